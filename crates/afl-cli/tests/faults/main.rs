//! The faults of the design's list that need real stores, each test named after its fault.

mod damage;
mod full;
mod large;
mod outage;
mod races;
mod site;
mod views;
mod work;
