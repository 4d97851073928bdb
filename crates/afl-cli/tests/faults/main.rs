//! The faults of the design's list that need real stores, each test named after its fault.

mod full;
mod outage;
mod races;
mod site;
mod views;
mod work;
