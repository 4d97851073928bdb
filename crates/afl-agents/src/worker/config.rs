//! How a worker is set, under the names and with the defaults of document 000.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use afl_runtime::agent::DEFAULT_TASK_LIST;
use afl_runtime::wire_enum;

wire_enum! {
    /// Which of the documents' runners a worker is: they differ in where their handlers come from and in what they do
    /// beside event tasks.
    pub enum Profile ("profile") {
        /// `RegistryRunner`: handlers are registrations in the store.
        Registry = "registry",
        /// `AgentPoller`: handlers are functions of this process.
        Poller = "poller",
        /// `RunnerService`: handlers are those given to this process; and system tasks, named locks, an HTTP status.
        Service = "service",
    }
}

impl Profile {
    const fn service_name(self) -> &'static str {
        match self {
            Self::Registry => "afl-registry-runner",
            Self::Poller => "afl-agent",
            Self::Service => "afl-runner",
        }
    }
}

/// Only what differs from the profile's defaults need be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub profile: Profile,
    pub service_name: String,
    pub server_group: String,
    pub server_name: String,
    /// Where tasks are taken from, each list as readily as the others.
    pub task_lists: Vec<String>,
    /// Patterns over facet names; none takes all.
    pub topics: Vec<String>,
    /// The capabilities of this worker, which tasks may need.
    pub capabilities: Vec<String>,
    /// The back-stop between claims: a worker is woken when work comes.
    pub poll_interval_ms: u64,
    pub max_concurrent: usize,
    pub heartbeat_interval_ms: u64,
    /// The lease of a task, and of the lock of a work item.
    pub lock_duration_ms: u64,
    pub lock_extend_interval_ms: u64,
    pub registry_refresh_interval_ms: u64,
    pub shutdown_timeout_ms: u64,
    /// The address of the status server: this machine's own, unless configured otherwise.
    pub http_host: IpAddr,
    /// Where the search for a free port begins, 0 for any; `None` serves no HTTP.
    pub http_port: Option<u16>,
    pub http_max_port_attempts: u16,
}

/// An extension reports a cancel, so extensions are never further apart.
const CANCEL_HEARD_WITHIN: Duration = Duration::from_secs(5);

/// Between the end of a handler's kill ladder and the end of its lease: for the system to end processes, and for the difference
/// between the clocks of holder and store.
const STOP_MARGIN: Duration = Duration::from_secs(1);

/// The shortest lease for a handler that stops within `ladder`. Half of it is left for work, so the first extension, after
/// a third, comes in time.
pub(super) fn shortest_lease(ladder: Duration) -> Duration {
    2 * (ladder + STOP_MARGIN)
}

impl Config {
    pub fn of(profile: Profile) -> Self {
        Self {
            profile,
            service_name: profile.service_name().to_owned(),
            server_group: "default".to_owned(),
            server_name: host_name(),
            task_lists: vec![DEFAULT_TASK_LIST.to_owned()],
            topics: Vec::new(),
            capabilities: Vec::new(),
            poll_interval_ms: 2_000,
            max_concurrent: 5,
            heartbeat_interval_ms: 10_000,
            lock_duration_ms: 60_000,
            lock_extend_interval_ms: 20_000,
            registry_refresh_interval_ms: 30_000,
            shutdown_timeout_ms: 30_000,
            http_host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            http_port: match profile {
                Profile::Service => Some(8_080),
                Profile::Registry | Profile::Poller => None,
            },
            http_max_port_attempts: 20,
        }
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.lock_duration_ms)
    }

    /// How long a lease is the holder's, whose handler stops within `ladder`. The rest of the lease is for the stop, so no
    /// other agent begins while this one still works.
    pub(super) fn held_for(&self, ladder: Duration) -> Duration {
        let lease = self.lease();
        lease.saturating_sub((lease / 5).max(ladder + STOP_MARGIN))
    }

    /// A third of the lease at most, so that two extensions may fail.
    pub(super) fn extend_every(&self) -> Duration {
        self.lock_extend_every().min(CANCEL_HEARD_WITHIN)
    }

    /// As for the lease, but an extension of the lock reports no cancel.
    pub(super) fn lock_extend_every(&self) -> Duration {
        Duration::from_millis(self.lock_extend_interval_ms).min(self.lease() / 3)
    }
}

pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: SDK-4.1-a, SDK-4.1-b, SDK-7.1-a, SDK-7.1-b, SDK-7.1-c, SDK-7.1-d, SDK-8.2-a, SDK-8.2-b
    #[test]
    fn each_profile_has_the_defaults_of_its_document() {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| Config::of(*profile).service_name).collect();
        assert_eq!(names, ["afl-registry-runner", "afl-agent", "afl-runner"]);
        for profile in Profile::ALL {
            let config = Config::of(*profile);
            assert_eq!(
                (config.server_group.as_str(), &config.task_lists[..]),
                ("default", &["default".to_owned()][..])
            );
            assert_eq!(config.server_name, host_name());
            assert!(config.topics.is_empty());
            assert_eq!(
                (config.poll_interval_ms, config.max_concurrent, config.heartbeat_interval_ms),
                (2_000, 5, 10_000)
            );
            assert_eq!(
                (config.lock_duration_ms, config.lock_extend_interval_ms, config.shutdown_timeout_ms),
                (60_000, 20_000, 30_000)
            );
            assert_eq!((config.registry_refresh_interval_ms, config.http_max_port_attempts), (30_000, 20));
        }
        assert_eq!(Config::of(Profile::Service).http_port, Some(8_080));
        let others = [Profile::Registry, Profile::Poller].map(|profile| Config::of(profile).http_port);
        assert_eq!(others, [None, None]);
    }

    #[test]
    fn a_holder_keeps_a_lease_for_four_fifths_of_it_or_until_its_handler_must_be_stopped() {
        let held_ms = |lease_ms, ladder_ms| {
            let config = Config { lock_duration_ms: lease_ms, ..Config::of(Profile::Registry) };
            config.held_for(Duration::from_millis(ladder_ms)).as_millis()
        };
        assert_eq!(
            [held_ms(60_000, 0), held_ms(60_000, 6_000), held_ms(60_000, 20_000)],
            [48_000, 48_000, 39_000]
        );
        assert_eq!([held_ms(15_000, 6_000), held_ms(3_000, 1_000), held_ms(1_000, 6_000)], [8_000, 1_000, 0]);
        for ladder_ms in [0, 1_000, 6_000] {
            let least = shortest_lease(Duration::from_millis(ladder_ms)).as_millis();
            let least = u64::try_from(least).unwrap();
            assert!(held_ms(least, ladder_ms) > u128::from(least) / 3, "the first extension comes in time");
        }
    }

    // covers: XR-14
    #[test]
    fn a_cancel_is_noticed_within_five_seconds_or_a_third_of_the_lease() {
        let extended = |lease_ms, interval_ms| {
            let config = Config::of(Profile::Registry);
            let config =
                Config { lock_duration_ms: lease_ms, lock_extend_interval_ms: interval_ms, ..config };
            config.extend_every().as_millis()
        };
        assert_eq!(
            [extended(60_000, 20_000), extended(3_000, 20_000), extended(60_000, 500)],
            [5_000, 1_000, 500]
        );
    }
}
