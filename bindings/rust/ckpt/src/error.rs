use crate::sys;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::sync::Mutex;

/// What a call or a callback came to.
pub type Result<T> = std::result::Result<T, Error>;

/// A status of libckpt (negative), or of a callback (positive), and its text.
pub struct Error {
    status: i32,
    text: String,
    cause: Option<Cause>,
}

enum Cause {
    Error(Box<dyn std::error::Error + Send + Sync + 'static>),
    Panic(Mutex<Box<dyn Any + Send + 'static>>), // for Sync alone
}

/// The status of a callback that panicked.
pub const PANICKED: i32 = i32::MAX;
/// The status of a callback's error that has none of its own.
pub const FAILED: i32 = 1;

impl Error {
    /// An error of the caller's own, for callbacks. A status that is not positive becomes `FAILED`.
    pub fn user(status: i32, text: impl Into<String>) -> Self {
        Self { status: if status > 0 { status } else { FAILED }, text: text.into(), cause: None }
    }

    /// Any error, for callbacks: it comes back as `std::error::Error::source` of what the failing call returns.
    pub fn other(cause: impl Into<Box<dyn std::error::Error + Send + Sync + 'static>>) -> Self {
        let cause = cause.into();
        Self { status: FAILED, text: cause.to_string(), cause: Some(Cause::Error(cause)) }
    }

    pub(crate) fn new(status: i32, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), cause: None }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(sys::CKPT_ERROR_INVALID_ARGUMENT, text)
    }

    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        let said = payload.downcast_ref::<&str>().map(|text| text.to_string()).or_else(|| payload.downcast_ref::<String>().cloned());
        let text = format!("panicked: {}", said.unwrap_or_else(|| "(a payload that is no text)".to_string()));
        Self { status: PANICKED, text, cause: Some(Cause::Panic(Mutex::new(payload))) }
    }

    /// Negative: libckpt's (`ckpt::sys::CKPT_ERROR_*`); positive: a callback's.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// "BUDGET"; "USER" for a callback's.
    pub fn name(&self) -> &'static str {
        text_of(unsafe { sys::ckpt_status_name(self.status) })
    }

    /// One sentence.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The payload of the panic that this error stands for, to `std::panic::resume_unwind` it.
    pub fn into_panic(self) -> std::result::Result<Box<dyn Any + Send>, Self> {
        match self.cause {
            Some(Cause::Panic(payload)) => Ok(payload.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.text, self.name(), self.status)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Some(Cause::Error(cause)) => Some(&**cause),
            _ => None,
        }
    }
}

thread_local! {
    /// What a callback failed with, on its way over the C frames to the call that ran it.
    static CARRIED: RefCell<Option<Error>> = const { RefCell::new(None) };
    /// A panic of a callback that cannot fail (a trace, a drop).
    static DEFERRED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Keeps a callback's error; what is returned goes over the C frames in its place.
pub(crate) fn carry(error: Error) -> i32 {
    let status = if error.status == 0 { FAILED } else { error.status };
    CARRIED.with(|slot| *slot.borrow_mut() = Some(error));
    status
}

pub(crate) fn defer(payload: Box<dyn Any + Send>) {
    DEFERRED.with(|slot| {
        slot.borrow_mut().get_or_insert(Error::panic(payload));
    });
}

/// Ok, or what a callback failed with and the library's text, or the library's own error.
pub(crate) fn check(status: i32) -> Result<()> {
    check_with(status, sys::ckpt_last_error)
}

pub(crate) fn check_with(status: i32, last: unsafe extern "C" fn() -> *const c_char) -> Result<()> {
    if status == 0 {
        return match DEFERRED.with(|slot| slot.borrow_mut().take()) {
            None => Ok(()),
            Some(error) => Err(error),
        };
    }
    // The text of a callback that failed is in the core's place, whoever ran it.
    let text = text_of(if status > 0 { unsafe { sys::ckpt_last_error() } } else { unsafe { last() } });
    match CARRIED.with(|slot| slot.borrow_mut().take()) {
        Some(mut carried) if carried.status == status => {
            carried.text = text.to_string();
            Err(carried)
        }
        _ => Err(Error::new(status, text)),
    }
}

/// For functions that return a pointer.
pub(crate) fn last() -> Error {
    Error::new(unsafe { sys::ckpt_last_status() }, text_of(unsafe { sys::ckpt_last_error() }))
}

/// The text is static, or used before the next call.
pub(crate) fn text_of<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("(a text that is no UTF-8)")
}

pub(crate) fn c_text(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::argument(format!("{} is {:?}, expected a text without a zero byte", what, text)))
}

/// A text that the caller owns.
pub(crate) fn take_text(text: *mut c_char) -> String {
    let copy = text_of(text).to_string();
    unsafe { sys::ckpt_text_free(text) };
    copy
}
