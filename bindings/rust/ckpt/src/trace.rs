use crate::error::defer;
use std::cell::RefCell;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

/// A change of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// `ckpt::sys::CKPT_ACTION_*`
    pub what: u32,
    /// Segment or boundary.
    pub index: u32,
    /// The live load after it.
    pub in_use_bytes: usize,
    pub is_recompute: bool,
}

pub type TraceFn = Box<dyn FnMut(TraceEvent)>;

pub(crate) struct Kept(RefCell<TraceFn>);

pub(crate) fn keep(trace: TraceFn) -> Rc<Kept> {
    Rc::new(Kept(RefCell::new(trace)))
}

pub(crate) fn user_of(kept: &Rc<Kept>) -> *mut c_void {
    Rc::as_ptr(kept) as *mut c_void
}

pub(crate) unsafe extern "C" fn trampoline(user: *mut c_void, what: u32, index: u32, in_use_bytes: usize, is_recompute: u32) {
    // A count of its own: the function may set the tape's trace anew.
    Rc::increment_strong_count(user as *const Kept);
    let kept = Rc::from_raw(user as *const Kept);
    let event = TraceEvent { what, index, in_use_bytes, is_recompute: is_recompute != 0 };
    let called = catch_unwind(AssertUnwindSafe(|| {
        if let Ok(mut function) = kept.0.try_borrow_mut() {
            function(event)
        }
    }));
    if let Err(payload) = called {
        defer(payload);
    }
}
