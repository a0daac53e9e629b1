/// A handle's wrapper: owns the pointer, gives it back when dropped.
macro_rules! handle {
    ($(#[$text:meta])* $name:ident, $raw:ident, $destroy:ident) => {
        $(#[$text])*
        pub struct $name {
            raw: std::ptr::NonNull<crate::sys::$raw>,
        }

        impl $name {
            #[allow(dead_code)]
            pub(crate) fn from_raw(raw: *mut crate::sys::$raw) -> Self {
                Self { raw: std::ptr::NonNull::new(raw).expect("libckpt gave no handle and no error") }
            }

            /// The C handle, as long as this object lives.
            pub fn as_ptr(&self) -> *mut crate::sys::$raw {
                self.raw.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { crate::sys::$destroy(self.raw.as_ptr()) }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:p})", stringify!($name), self.raw)
            }
        }
    };
}

/// A copy of a struct of numbers with the size that this crate was compiled with: a size that a caller writes there could reach
/// beyond the struct.
macro_rules! sized {
    ($desc:expr, $type:ident) => {{
        let mut copy: crate::sys::$type = *$desc;
        copy.struct_size = std::mem::size_of::<crate::sys::$type>() as u32;
        copy
    }};
}
