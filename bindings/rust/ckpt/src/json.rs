use crate::error::{check, take_text, Result};
use crate::plan::Chain;
use crate::sys;
use std::ptr;

handle! {
    /// Records what a tape does, with times: `Tape::attach_trace`.
    Trace, ckpt_trace, ckpt_trace_destroy
}

impl Trace {
    /// Room for this many events; what comes later is counted, not kept.
    pub fn new(event_limit: usize) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_trace_create(event_limit, &mut raw) })?;
        Ok(Self::from_raw(raw))
    }

    /// Forgets the events so far.
    pub fn clear(&self) -> Result<()> {
        check(unsafe { sys::ckpt_trace_clear(self.as_ptr()) })
    }

    /// Chrome's trace events. Names are the segments' of the chain (None: numbers).
    pub fn to_json(&self, chain: Option<&Chain>) -> Result<String> {
        let chain = chain.map_or(ptr::null(), |chain| chain.as_ptr() as *const _);
        let mut text = ptr::null_mut();
        check(unsafe { sys::ckpt_trace_to_json(self.as_ptr(), chain, &mut text) })?;
        Ok(take_text(text))
    }
}

/// Bytes from a text: "800000", "640KiB", "96MiB", "1.5GiB"; rounded down, so that a budget is kept.
pub fn parse_bytes(text: &str) -> Result<usize> {
    let wrong =
        || crate::Error::argument(format!("size is '{}', expected a size of at least one byte: 800000, 640KiB, 96MiB, 1.5GiB", text));
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit {
        "" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1048576.0,
        "GiB" => 1073741824.0,
        "TiB" => 1099511627776.0,
        _ => return Err(wrong()),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let bytes = digits.parse::<f64>().map_err(|_| wrong())? * factor;
    if !(1.0..=9007199254740992.0).contains(&bytes) || (unit.is_empty() && bytes.fract() != 0.0) {
        return Err(wrong());
    }
    Ok(bytes as usize)
}
