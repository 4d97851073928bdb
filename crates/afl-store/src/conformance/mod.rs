//! The contract of [`Backend`] as one list of checks that every backend runs.
//!
//! A backend's tests hold one line: `afl_store::conformance!(sqlite, SqliteFixture::new());`

pub mod differential;
mod given;
pub mod races;
pub mod records;
pub mod scans;
pub mod takes;
pub mod watches;

pub use given::{unread, without_epochs};

use std::sync::Arc;

use async_trait::async_trait;

use crate::backend::Backend;

/// One empty store, made anew for each check.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// A handle on the store: as another process would have it where the backend allows that, else the same.
    async fn open(&self) -> Arc<dyn Backend>;
}

#[async_trait]
impl<B: Backend + 'static> Fixture for Arc<B> {
    async fn open(&self) -> Arc<dyn Backend> {
        self.clone()
    }
}

/// A module of tests, one for each check; the expression makes the fixture of a check and may await.
#[macro_export]
macro_rules! conformance {
    ($backend:ident, $fixture:expr) => {
        mod $backend {
            use super::*;

            $crate::conformance! { each $fixture,
                records::a_written_record_is_read,
                records::a_get_answers_in_the_order_of_its_keys,
                records::a_body_is_kept_byte_by_byte,
                records::a_large_body_is_kept,
                records::names_are_only_names,
                records::ranks_seals_and_versions_are_kept,
                records::each_write_counts_the_version_up,
                records::a_new_record_must_be_absent,
                records::a_write_must_name_the_version,
                records::a_conflict_writes_nothing,
                records::a_conflict_names_the_key,
                records::a_deleted_record_is_gone_and_starts_anew,
                records::keeping_only_checks,
                records::both_durabilities_are_seen_at_once,
                records::an_empty_batch_is_fine,
                records::too_much_is_refused_whole,
                records::a_full_batch_is_taken,
                records::the_clock_goes_on,
                records::tenants_do_not_meet,
                scans::a_scope_is_read_in_the_order_of_bytes,
                scans::a_scope_is_read_by_prefix,
                scans::a_prefix_is_no_pattern,
                scans::a_scope_is_read_in_pages,
                scans::a_page_may_begin_outside_its_prefix,
                scans::a_bucket_is_read_by_rank_scope_and_id,
                scans::a_bucket_is_read_in_pages_both_ways,
                scans::a_bucket_is_read_up_to_a_rank,
                scans::a_mark_need_not_be_there_any_more,
                scans::a_record_moves_between_buckets,
                scans::a_record_leaves_its_bucket,
                scans::buckets_are_named_in_order,
                scans::a_bucket_is_named_with_its_lowest_rank,
                scans::nothing_is_asked_for_and_given,
                scans::scopes_are_listed_by_name,
                takes::the_lowest_rank_is_taken_first,
                takes::no_more_than_the_limit_is_taken,
                takes::a_taken_record_is_written,
                takes::a_record_that_the_mover_leaves_is_skipped,
                takes::a_mover_may_stop,
                takes::records_wanted_beside_are_read_in_the_same_go,
                takes::a_take_stops_at_its_highest_rank,
                takes::a_take_may_move_to_another_rank,
                takes::a_take_keeps_below_its_ceiling,
                takes::a_ceiling_may_be_the_bucket_of_the_take,
                takes::a_take_gives_up_after_its_looks,
                takes::a_take_begins_behind_a_record,
                takes::a_take_that_grows_a_body_too_much_moves_nothing,
                takes::the_mover_sees_the_clock_of_the_store,
                takes::a_taken_record_is_the_takers,
                races::one_of_fifty_writers_wins,
                races::one_of_fifty_creators_wins,
                races::batches_of_many_writers_are_whole,
                races::each_record_is_taken_once,
                races::a_ceiling_holds_with_many_takers,
                races::readers_see_a_batch_whole,
                races::calls_that_no_caller_polls_keep_no_other_waiting,
                watches::a_watch_wakes_when_a_record_comes,
                watches::a_watch_wakes_for_another_handle,
                watches::a_watch_wakes_for_a_take,
                watches::a_watch_counts_changes_before_it_is_asked,
                watches::a_watch_of_the_empty_prefix_sees_all,
                watches::many_watch_at_once,
                differential::a_random_history_is_that_of_memory,
            }
        }
    };
    (each $fixture:expr, $($group:ident::$check:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $check() {
                let fixture = $fixture;
                $crate::conformance::$group::$check(&fixture).await;
            }
        )+
    };
}
