//! A shell beside this process that ends the groups of its children should it be killed.
//!
//! Its standard input is a pipe from us. However we end, by return, panic, Ctrl-C or `kill -9`, the pipe closes, and
//! whatever group is still on its list is killed. A death signal would end the children themselves only, and would
//! follow the thread that started them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
#[expect(
    clippy::disallowed_types,
    reason = "groups are told from Drop, which cannot wait for a channel's reader"
)]
use std::sync::Mutex;
use std::sync::PoisonError;

#[derive(Debug)]
pub(crate) struct Guardian {
    #[expect(clippy::disallowed_types, reason = "protects the list and the order of the lines that tell it")]
    watch: Mutex<Watch>,
}

#[derive(Debug)]
struct Watch {
    groups: BTreeSet<i32>,
    shell: Child,
    /// Closed to let it end.
    orders: Option<ChildStdin>,
}

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
    pub(crate) fn start() -> io::Result<Self> {
        let (shell, orders) = start_shell()?;
        let watch = Watch { groups: BTreeSet::new(), shell, orders: Some(orders) };
        #[expect(clippy::disallowed_types, reason = "as at the field")]
        Ok(Self { watch: Mutex::new(watch) })
    }

    pub(super) fn watch_over(&self, group: i32) -> io::Result<()> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.groups.insert(group);
        watch.order('+', group)
    }

    pub(super) fn forget(&self, group: i32) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.groups.remove(&group);
        // A guardian that is gone is started anew for the next child, with the list as it is then.
        drop(watch.tell('-', group));
    }
}

impl Watch {
    /// Whoever ended the shell has not ended us: another one takes over the list.
    fn order(&mut self, order: char, group: i32) -> io::Result<()> {
        if self.tell(order, group).is_ok() {
            return Ok(());
        }
        let (shell, orders) = start_shell()?;
        self.shell.wait()?;
        (self.shell, self.orders) = (shell, Some(orders));
        let groups: Vec<i32> = self.groups.iter().copied().collect();
        groups.into_iter().try_for_each(|group| self.tell('+', group))
    }

    fn tell(&mut self, order: char, group: i32) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(format!("{order} {group}\n").as_bytes())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.orders.take());
        // Nothing can be done here about a shell that cannot be waited for.
        drop(self.shell.wait());
    }
}

fn start_shell() -> io::Result<(Child, ChildStdin)> {
    let mut shell = Command::new("sh");
    // A group of its own: Ctrl-C at the terminal must reach us, not the guardian.
    shell.args(["-c", SCRIPT]).process_group(0).env_clear().current_dir("/");
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let orders = child.stdin.take().expect("stdin is piped");
    Ok((child, orders))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    #[test]
    fn what_is_watched_dies_with_us_even_if_the_first_shell_was_killed() {
        let guardian = Guardian::start().unwrap();
        let (mut early, mut freed, mut late) = (sleeper(), sleeper(), sleeper());
        guardian.watch_over(early.id().cast_signed()).unwrap();
        guardian.watch_over(freed.id().cast_signed()).unwrap();
        {
            let mut watch = guardian.watch.lock().unwrap();
            watch.shell.kill().unwrap();
            watch.shell.wait().unwrap();
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
