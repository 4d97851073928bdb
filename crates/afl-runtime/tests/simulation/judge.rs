//! The laws of a world at its end.

use std::collections::BTreeMap;

use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_engine::value::Value;
use afl_runtime::TaskQuery;
use afl_runtime::doctor::{Finding, Promise, Remedy};
use afl_store::Version;
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Scan, Write};
use afl_store::record::{Content, Key};
use afl_store::seed::SeededRng;

use crate::agent::Mood;
use crate::executor::{Executor, alone};
use crate::world::{DRIVERS, KILLED, Outcome, People, World, tenant};

impl World {
    pub(crate) fn judge(&self, run: &RunId) -> Outcome {
        let bare = &self.bare;
        let seed = self.seed;
        self.examine(run);
        let record = alone(bare.run(run)).expect("memory does not fail");
        let runs = alone(bare.runs(&afl_runtime::RunQuery { limit: 10, ..Default::default() }))
            .expect("memory does not fail");
        assert_eq!(runs.runs.len(), 1, "seed {seed}: one key, one run");
        self.judge_damage(run);
        if record.status == RunStatus::Canceled {
            assert_eq!(self.people, People::Cancel, "seed {seed}: nobody asked for it");
            return Outcome::Canceled;
        }
        if self.people != People::Retry && self.wore_out(run) {
            return Outcome::Exhausted;
        }
        let outputs = alone(bare.outputs(run)).expect("memory does not fail");
        let is_done = record.status == RunStatus::Completed;
        let out = outputs.get("out").and_then(Value::as_i64).filter(|_| is_done);
        let all = outputs.get("all").and_then(Value::as_array).filter(|_| is_done);
        let all = all.map(|all| all.iter().filter_map(Value::as_i64).collect::<Vec<_>>());
        assert_eq!((out, &all), (self.expected.out, &self.expected.all), "seed {seed}: {:?}", record.error);
        self.judge_work();
        if self.people == People::Watch {
            self.judge_convergence(run);
        }
        Outcome::AsExpected
    }

    /// G13: whichever record is damaged, the doctor names it.
    fn judge_damage(&self, run: &RunId) {
        let scan = Scan::Scope {
            tenant: tenant(),
            scope: run.0.clone(),
            prefix: String::new(),
            after: None,
            limit: usize::MAX,
        };
        let mut records = alone(self.memory.scan(&scan)).expect("memory does not fail");
        let record = records.swap_remove(SeededRng::new(self.seed).below(records.len()));
        let mut hurt = record.content.clone();
        let middle = hurt.body.len() / 2;
        hurt.body[middle] ^= 1;
        self.rewrite(&record.key, record.version, hurt);
        let report = alone(self.bare.examine(run, Remedy::Tell)).expect("memory does not fail");
        let is_named = |finding: &Finding| finding.promise == Promise::FailStop && finding.run == *run;
        assert!(report.findings.iter().any(is_named), "seed {}: {:?} is damaged", self.seed, record.key);
        self.rewrite(&record.key, record.version.next(), record.content);
    }

    fn rewrite(&self, key: &Key, version: Version, content: Content) {
        let expect = Expect::Version(version);
        let write = Write { key: key.clone(), expect, change: Change::Put(content) };
        alone(self.memory.commit(Batch::new(vec![write], Durability::Durable))).expect("nobody else writes");
    }

    /// G6: the records at the end equal those of an undisturbed run.
    fn judge_convergence(&self, run: &RunId) {
        let quiet = Self::new(self.seed, self.people);
        let hash = alone(quiet.bare.publish(&quiet.source)).expect("memory does not fail");
        let undisturbed = quiet.start(hash);
        *quiet.mood.borrow_mut() = Mood::Good;
        let mut actors = Executor::default();
        for place in [0, DRIVERS] {
            actors.put(place, quiet.actor(place, &undisturbed));
        }
        let mut rng = SeededRng::new(self.seed);
        while !quiet.is_over(&undisturbed) {
            actors.step(&mut rng);
            // A retry may have to wait.
            quiet.clock.advance(Millis(15));
        }
        let [found, expected] = [(self, run), (&quiet, &undisturbed)]
            .map(|(world, run)| alone(world.bare.canonical(run)).expect("memory does not fail"));
        assert_eq!(found, expected, "seed {}: it ends as it does undisturbed", self.seed);
    }

    /// Whether a task was given up because its deliveries were lost, which changes what a run comes to.
    fn wore_out(&self, run: &RunId) -> bool {
        let query = TaskQuery { run: Some(run.clone()), limit: 10_000, ..TaskQuery::default() };
        let tasks = alone(self.bare.tasks(&query)).expect("memory does not fail").tasks;
        tasks.iter().any(|task| task.error.as_ref().is_some_and(|error| error.contains("lease")))
    }

    /// G3: for each key as many outcomes were accepted as the program asks for; one without an answer counts.
    fn judge_work(&self) {
        let log = self.log.borrow();
        let mut missing = 0;
        let counts: &BTreeMap<String, usize> = &self.expected.counts;
        for (key, accepted) in &log.accepted {
            let wanted = counts.get(key).copied().unwrap_or(0);
            assert!(
                *accepted <= wanted,
                "seed {}: {key} was accepted {accepted} times of {wanted}",
                self.seed
            );
        }
        for (key, wanted) in counts {
            let accepted = log.accepted.get(key).copied().unwrap_or(0);
            missing += wanted - accepted;
            let done = log.done.get(key).copied().unwrap_or(0);
            assert!(done >= *wanted, "seed {}: {key} was done {done} times of {wanted}", self.seed);
        }
        let lost = log.unknown;
        assert!(missing <= lost + KILLED, "seed {}: {missing} outcomes came from nowhere", self.seed);
    }
}
