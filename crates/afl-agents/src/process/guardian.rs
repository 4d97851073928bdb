//! A shell beside this process that ends the groups of its children should it be killed.
//!
//! Its standard input is a pipe from us. However we end, by return, panic, Ctrl-C or `kill -9`, the pipe closes, and
//! whatever group is still on its list is killed. A death signal would end the children themselves only, and would
//! follow the thread that started them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
#[expect(
    clippy::disallowed_types,
    reason = "Drop removes groups, and cannot wait for a channel's reader"
)]
use std::sync::Mutex;
use std::sync::PoisonError;

/// Its shell starts with the first group, or before.
#[derive(Debug, Default)]
pub(crate) struct Guardian {
    #[expect(clippy::disallowed_types, reason = "protects the list and the order of the lines to the shell")]
    watch: Mutex<GuardianState>,
}

#[derive(Debug, Default)]
struct GuardianState {
    groups: BTreeSet<i32>,
    shell: Option<Shell>,
}

/// Ends when its standard input is closed.
#[derive(Debug)]
struct Shell(Child);

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r order group; do
    case $order in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% "$group" *} ${groups#* "$group" }" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

impl Guardian {
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        match watch.shell {
            Some(_) => Ok(()),
            None => watch.restart(),
        }
    }

    pub(super) fn watch_over(&self, group: i32) -> io::Result<()> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.groups.insert(group);
        // An operator may have killed the shell: another one takes over the list.
        watch.order('+', group).or_else(|_| watch.restart())
    }

    pub(super) fn forget(&self, group: i32) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.groups.remove(&group);
        // A shell that is gone is started anew for the next child, with the list as it is then.
        drop(watch.order('-', group));
    }
}

impl GuardianState {
    fn restart(&mut self) -> io::Result<()> {
        self.shell = Some(Shell::start()?);
        let groups: Vec<i32> = self.groups.iter().copied().collect();
        groups.into_iter().try_for_each(|group| self.order('+', group))
    }

    fn order(&mut self, order: char, group: i32) -> io::Result<()> {
        let orders = self.shell.as_mut().and_then(|shell| shell.0.stdin.as_mut());
        orders.ok_or(io::ErrorKind::BrokenPipe)?.write_all(format!("{order} {group}\n").as_bytes())
    }
}

impl Shell {
    fn start() -> io::Result<Self> {
        let mut shell = Command::new("sh");
        // A group of its own: Ctrl-C at the terminal must reach us, not the guardian.
        shell.args(["-c", SCRIPT]).process_group(0).env_clear().current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // `wait` closes its input first. Nothing can be done here about a shell that cannot be waited for.
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_watched_process_dies_with_us_even_if_the_first_shell_was_killed() {
        let guardian = Guardian::default();
        let (mut early, mut freed, mut late) = (sleeper(), sleeper(), sleeper());
        guardian.watch_over(early.id().cast_signed()).unwrap();
        guardian.watch_over(freed.id().cast_signed()).unwrap();
        {
            let mut watch = guardian.watch.lock().unwrap();
            let shell = &mut watch.shell.as_mut().unwrap().0;
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
        guardian.watch_over(late.id().cast_signed()).unwrap();
        guardian.forget(freed.id().cast_signed());
        drop(guardian);
        for child in [&mut early, &mut late] {
            assert_eq!(child.wait().unwrap().signal(), Some(9));
        }
        assert!(freed.try_wait().unwrap().is_none());
        freed.kill().unwrap();
        freed.wait().unwrap();
    }
}
