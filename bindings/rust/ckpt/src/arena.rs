use crate::device::Device;
use crate::element::{count_of, Element};
use crate::error::{check, defer, last, Error, Result};
use crate::sys;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

pub type ArenaStats = sys::ckpt_arena_stats;

/// The caller's allocator for an arena's slab.
///
/// # Safety
/// What `alloc` gives is `bytes` of memory of the arena's device, aligned, and nobody else's until `free`. NULL refuses.
pub unsafe trait Allocator {
    fn alloc(&self, bytes: usize, alignment_bytes: usize) -> *mut u8;
    /// # Safety
    /// `data` came from `alloc` with these bytes; called once.
    unsafe fn free(&self, data: *mut u8, bytes: usize);
}

/// How an arena is made.
#[derive(Default)]
pub struct ArenaOptions {
    desc: sys::ckpt_arena_desc,
    allocator: Option<Box<Box<dyn Allocator>>>,
}

impl ArenaOptions {
    /// No capacity: bounded by the device's memory alone.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn capacity(mut self, bytes: usize) -> Self {
        self.desc.capacity_bytes = bytes;
        self
    }

    /// A power of two, at least 64.
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.desc.alignment_bytes = bytes;
        self
    }

    /// A pattern before and after each block, checked when it is freed and by `Arena::check`.
    pub fn guard(mut self) -> Self {
        self.desc.flags |= sys::CKPT_ARENA_GUARD;
        self
    }

    /// New and freed blocks are filled with NaN.
    pub fn poison(mut self) -> Self {
        self.desc.flags |= sys::CKPT_ARENA_POISON;
        self
    }

    /// The slab comes from the device's ordinary allocator; needs a capacity.
    pub fn plain(mut self) -> Self {
        self.desc.flags |= sys::CKPT_ARENA_PLAIN;
        self
    }

    /// The one stream of all work on the arena.
    ///
    /// # Safety
    /// A live stream of the arena's device, until the arena and all on it are gone.
    pub unsafe fn stream(mut self, stream: *mut c_void) -> Self {
        self.desc.stream = stream;
        self
    }

    /// The slab comes from here: one call when the arena is made (which then needs a capacity), one at the end.
    pub fn allocator(mut self, allocator: impl Allocator + 'static) -> Self {
        self.allocator = Some(Box::new(Box::new(allocator)));
        self
    }
}

unsafe extern "C" fn alloc_trampoline(user: *mut c_void, bytes: usize, alignment_bytes: usize) -> *mut c_void {
    let allocator = &*(user as *const Box<dyn Allocator>);
    match catch_unwind(AssertUnwindSafe(|| allocator.alloc(bytes, alignment_bytes))) {
        Ok(data) => data as *mut c_void,
        Err(payload) => {
            defer(payload);
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn free_trampoline(user: *mut c_void, data: *mut c_void, bytes: usize) {
    let allocator = &*(user as *const Box<dyn Allocator>);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| allocator.free(data as *mut u8, bytes))) {
        defer(payload);
    }
}

unsafe extern "C" fn release_trampoline(user: *mut c_void) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(user as *mut Box<dyn Allocator>)))) {
        defer(payload);
    }
}

handle! {
    /// One slab of device memory and a placer on offsets. One thread at a time uses an arena and all that lives on it, so it stays
    /// on the thread that made it:
    ///
    /// ```compile_fail
    /// fn needs_send<T: Send>() {}
    /// needs_send::<ckpt::Arena>();
    /// ```
    ArenaHandle, ckpt_arena, ckpt_arena_destroy
}

/// See `ArenaHandle`; knows too whether the host may read its memory.
#[derive(Debug)]
pub struct Arena {
    handle: ArenaHandle,
    host: bool,
}

impl Arena {
    pub fn new(device: &Device, options: ArenaOptions) -> Result<Self> {
        let host = device.is_host()?;
        let mut desc = options.desc;
        if let Some(allocator) = options.allocator {
            desc.alloc = Some(alloc_trampoline);
            desc.free = Some(free_trampoline);
            desc.user = Box::into_raw(allocator) as *mut c_void;
            desc.release = Some(release_trampoline);
        }
        let mut raw = ptr::null_mut();
        let status = unsafe { sys::ckpt_arena_create(device.as_ptr(), &desc, &mut raw) };
        let refused = [sys::CKPT_ERROR_INVALID_ARGUMENT, sys::CKPT_ERROR_STRUCT_SIZE, sys::CKPT_ERROR_OVERFLOW];
        if refused.contains(&status) && !desc.user.is_null() {
            unsafe { release_trampoline(desc.user) } // a desc that is refused as such is not taken
        }
        check(status)?;
        Ok(Self { handle: ArenaHandle::from_raw(raw), host })
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_arena {
        self.handle.as_ptr()
    }

    pub fn is_host(&self) -> bool {
        self.host
    }

    /// A block, given back when it is dropped.
    pub fn alloc(&self, bytes: usize) -> Result<Block<'_>> {
        self.alloc_at(bytes, 0)
    }

    /// From the high end.
    pub fn alloc_high(&self, bytes: usize) -> Result<Block<'_>> {
        self.alloc_at(bytes, sys::CKPT_ARENA_HIGH)
    }

    fn alloc_at(&self, bytes: usize, flags: u32) -> Result<Block<'_>> {
        let data = unsafe { sys::ckpt_arena_alloc(self.as_ptr(), bytes, flags) } as *mut u8;
        if data.is_null() {
            return Err(last());
        }
        Ok(Block { arena: self, data, bytes })
    }

    /// With `guard`: verifies the guards of all live blocks.
    pub fn check(&self) -> Result<()> {
        check(unsafe { sys::ckpt_arena_check(self.as_ptr()) })
    }

    pub fn stats(&self) -> Result<ArenaStats> {
        let mut stats = ArenaStats::default();
        check(unsafe { sys::ckpt_arena_get_stats(self.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    pub fn reset_stats(&self) -> Result<()> {
        check(unsafe { sys::ckpt_arena_reset_stats(self.as_ptr()) })
    }
}

/// Memory of an arena.
#[derive(Debug)]
pub struct Block<'a> {
    arena: &'a Arena,
    data: *mut u8,
    bytes: usize,
}

impl Block<'_> {
    /// The device's address.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.data
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// On the CPU: the memory as T.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        if !self.arena.host {
            return Err(Error::argument("block: memory of another device than the CPU, expected as_mut_ptr"));
        }
        let count = count_of::<T>(|| "block".to_string(), self.data, self.bytes)?;
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data as *mut T, count) })
    }

    /// Gives it back; says so where its guards were overwritten.
    pub fn free(self) -> Result<()> {
        let block = std::mem::ManuallyDrop::new(self);
        check(unsafe { sys::ckpt_arena_free(block.arena.as_ptr(), block.data as *mut c_void) })
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        unsafe { sys::ckpt_arena_free(self.arena.as_ptr(), self.data as *mut c_void) };
    }
}
