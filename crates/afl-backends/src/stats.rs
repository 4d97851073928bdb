//! Counters of a store's work in this process, for tests and measurements.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the figures of one kind of store, and the counters that they are read from.
macro_rules! stats {
    (pub struct $stats:ident counted by $counters:ident { $( $(#[$doc:meta])* $field:ident, )+ }) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $stats {
            $( $(#[$doc])* pub $field: u64, )+
        }

        #[derive(Debug, Default)]
        struct $counters {
            $( $field: $crate::stats::Counter, )+
        }

        impl $counters {
            fn read(&self) -> $stats {
                $stats { $( $field: self.$field.get(), )+ }
            }
        }
    };
}
pub(crate) use stats;
