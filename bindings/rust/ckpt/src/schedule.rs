use crate::error::{check, take_text, Result};
use crate::sys;
use std::ptr;

/// The fewest extra forward steps for this many steps and snapshots, the input's included.
pub fn revolve_extra_forwards(steps: u64, snapshots: u64) -> Result<u64> {
    let mut count = 0;
    check(unsafe { sys::ckpt_revolve_extra_forwards(steps, snapshots, &mut count) })?;
    Ok(count)
}

/// What to do next in a loop of equal steps; see `ckpt_schedule_next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleAction {
    /// Copy the state, at `step`, to snapshot `snapshot`.
    Store { step: u64, snapshot: u32 },
    /// Copy snapshot `snapshot`, of `step`, to the state.
    Restore { step: u64, snapshot: u32 },
    /// Run steps first .. last - 1 forward, keeping nothing.
    Advance { first: u64, last: u64 },
    /// Run `step` forward, keeping what its adjoint needs, and then its adjoint.
    Backward { step: u64 },
}

handle! {
    /// An iterator over the actions of Revolve.
    Schedule, ckpt_schedule, ckpt_schedule_destroy
}

unsafe impl Send for Schedule {}

impl Schedule {
    pub fn revolve(steps: u64, snapshots: u32) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_schedule_revolve(steps, snapshots, &mut raw) })?;
        Ok(Self::from_raw(raw))
    }

    /// None at the end.
    pub fn next_action(&mut self) -> Result<Option<ScheduleAction>> {
        let mut raw = sys::ckpt_schedule_action::default();
        check(unsafe { sys::ckpt_schedule_next(self.as_ptr(), &mut raw) })?;
        Ok(match raw.kind {
            sys::CKPT_SCHEDULE_STORE => Some(ScheduleAction::Store { step: raw.first, snapshot: raw.snapshot }),
            sys::CKPT_SCHEDULE_RESTORE => Some(ScheduleAction::Restore { step: raw.first, snapshot: raw.snapshot }),
            sys::CKPT_SCHEDULE_ADVANCE => Some(ScheduleAction::Advance { first: raw.first, last: raw.last }),
            sys::CKPT_SCHEDULE_BACKWARD => Some(ScheduleAction::Backward { step: raw.first }),
            _ => None,
        })
    }

    /// All actions in the vocabulary of checkpoint_schedules.
    pub fn into_json(self) -> Result<String> {
        let mut text = ptr::null_mut();
        check(unsafe { sys::ckpt_schedule_to_json(self.as_ptr(), &mut text) })?;
        Ok(take_text(text))
    }
}

impl Iterator for Schedule {
    type Item = Result<ScheduleAction>;
    fn next(&mut self) -> Option<Self::Item> {
        self.next_action().transpose()
    }
}
