//! Leases: extends that of a holder, and checks by the ticket that a caller is the holder.

use afl_engine::event::Event;
use afl_engine::run::Control;
use afl_engine::task::{Move, Task, TaskKind, TaskState, TicketStatus};
use afl_engine::time::Millis;

use super::settle::asked;
use super::{Queue, Refusal, Ticket};
use crate::backend::Durability;
use crate::conflict::retry_on_conflict;
use crate::notification::NotifyOn;
use crate::store::StoredRecord;

impl Queue {
    /// The holder is alive; it keeps the task until the returned time.
    pub async fn extend(&self, ticket: &Ticket, by: Millis) -> Result<Millis, Refusal> {
        retry_on_conflict(|| async {
            let TicketWork { mut task, .. } = self.held(ticket).await?;
            let now = self.store.now().await?;
            let expires = now.plus(by);
            task.item.apply(Move::Extend { expires }, ticket.authority(), now)?;
            let write = self.store.update(&ticket.run, &task, now);
            self.store.write(vec![write], Durability::Relaxed).await?;
            Ok(expires)
        })
        .await
    }

    /// The task and the event, while the ticket is that of the holder.
    pub(super) async fn held(&self, ticket: &Ticket) -> Result<TicketWork, Refusal> {
        match self.holding(ticket).await? {
            TicketCheck::Now(work) => Ok(*work),
            TicketCheck::Settled { path } => Err(Refusal::LeaseLost { path }),
        }
    }

    /// The same, and whether the holder has settled the task before.
    pub(super) async fn holding(&self, ticket: &Ticket) -> Result<TicketCheck, Refusal> {
        let work = self.store.work(&ticket.run, &ticket.step).await?;
        let unknown = || Refusal::Unknown { run: ticket.run.clone(), step: ticket.step.clone() };
        let (Some(task), Some(event)) = (work.task, work.event) else { return Err(unknown()) };
        let (control, asked) = match task.item.kind() {
            TaskKind::Event => {
                let run = work.run.ok_or_else(unknown)?.item;
                (run.control, asked(&run))
            }
            TaskKind::System => (Control::Go, NotifyOn::OnErrors),
        };
        let path = || task.item.path.clone();
        let canceled = || Refusal::Canceled { run: ticket.run.clone(), path: path() };
        match task.item.ticket_status(ticket.token, &ticket.secret) {
            TicketStatus::Current => {}
            TicketStatus::Spent => return Ok(TicketCheck::Settled { path: path() }),
            TicketStatus::Lost if task.item.state == TaskState::Canceled => return Err(canceled()),
            TicketStatus::Lost => return Err(Refusal::LeaseLost { path: path() }),
        }
        match control {
            Control::Cancel => Err(canceled()),
            Control::Go | Control::Hold => Ok(TicketCheck::Now(Box::new(TicketWork { task, event, asked }))),
        }
    }
}

pub(super) struct TicketWork {
    pub(super) task: StoredRecord<Task>,
    pub(super) event: StoredRecord<Event>,
    /// Which notifications the run asks for.
    pub(super) asked: NotifyOn,
}

pub(super) enum TicketCheck {
    Now(Box<TicketWork>),
    /// The holder has settled it before.
    Settled {
        path: String,
    },
}
