use crate::error::{Error, Result};

/// A number whose every bit pattern is valid.
///
/// # Safety
/// Only for such types, without padding.
pub unsafe trait Element: Copy + 'static {}

macro_rules! elements {
    ($($type:ty),*) => { $(unsafe impl Element for $type {})* };
}
elements!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

/// How many T there are in `bytes` at `data`, or why there are none.
pub(crate) fn count_of<T: Element>(what: impl Fn() -> String, data: *const u8, bytes: usize) -> Result<usize> {
    let size = std::mem::size_of::<T>();
    if bytes % size != 0 {
        return Err(Error::argument(format!(
            "{} has {} bytes, expected a multiple of {} ({})",
            what(),
            bytes,
            size,
            std::any::type_name::<T>()
        )));
    }
    if data as usize % std::mem::align_of::<T>() != 0 {
        return Err(Error::argument(format!(
            "{} is at {:p}, expected an address that is a multiple of {} ({})",
            what(),
            data,
            std::mem::align_of::<T>(),
            std::any::type_name::<T>()
        )));
    }
    Ok(bytes / size)
}
