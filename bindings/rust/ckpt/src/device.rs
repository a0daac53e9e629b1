use crate::element::Element;
use crate::error::{c_text, check, text_of, Error, Result};
use crate::philox::Philox;
use crate::sys;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;

handle! {
    /// The C object.
    DeviceHandle, ckpt_device, ckpt_device_close
}

// What this crate calls of a device is thread-safe, in the stream's order.
unsafe impl Send for DeviceHandle {}
unsafe impl Sync for DeviceHandle {}

/// A device: "cpu", "cuda", "cuda:1". Arenas and streams keep it open; a clone is the same device.
#[derive(Clone, Debug)]
pub struct Device {
    handle: Arc<DeviceHandle>,
}

/// What a device is and how much memory it has.
pub type DeviceInfo = sys::ckpt_device_info;

impl Device {
    /// Opens a device by name.
    pub fn open(name: &str) -> Result<Self> {
        let name = c_text("name", name)?;
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_device_open(name.as_ptr(), &mut raw) })?;
        Ok(Self { handle: Arc::new(DeviceHandle::from_raw(raw)) })
    }

    pub fn cpu() -> Result<Self> {
        Self::open("cpu")
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_device {
        self.handle.as_ptr()
    }

    pub fn info(&self) -> Result<DeviceInfo> {
        let mut info = DeviceInfo::default();
        check(unsafe { sys::ckpt_device_get_info(self.as_ptr(), &mut info) })?;
        Ok(info)
    }

    /// As in its info.
    pub fn name(&self) -> Result<String> {
        Ok(text_of(self.info()?.name.as_ptr()).to_string())
    }

    /// Whether the host may read its memory: it is the CPU.
    pub fn is_host(&self) -> Result<bool> {
        Ok(self.info()?.kind == sys::CKPT_DEVICE_KIND_CPU)
    }

    /// A stream that waits for no other; on the CPU its address is NULL.
    pub fn stream(&self) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_device_stream_create(self.as_ptr(), &mut raw) })?;
        Ok(Stream { device: self.clone(), raw })
    }

    /// Host memory that the device copies from and to by itself.
    pub fn host_memory<T: Element>(&self, len: usize) -> Result<HostMemory<T>> {
        let bytes = len.checked_mul(std::mem::size_of::<T>());
        let bytes = bytes.ok_or_else(|| Error::new(sys::CKPT_ERROR_OVERFLOW, format!("len is {}, expected fewer elements", len)))?;
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_device_host_alloc(self.as_ptr(), bytes, &mut raw) })?;
        unsafe { ptr::write_bytes(raw as *mut u8, 0, bytes) };
        Ok(HostMemory { device: self.clone(), data: raw as *mut T, len })
    }
}

/// The order of work on a device. Given to an arena or a handle of layers it must outlive them.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    raw: *mut c_void,
}

/// What kind of copy: `Stream::copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

impl Stream {
    pub fn as_ptr(&self) -> *mut c_void {
        self.raw
    }

    /// Waits until all work that was enqueued so far is done.
    pub fn synchronize(&self) -> Result<()> {
        check(unsafe { sys::ckpt_device_synchronize(self.device.as_ptr(), self.raw) })
    }

    /// # Safety
    /// Both are `bytes` of memory as `kind` says that do not overlap, until the stream has done it.
    pub unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: Copy) -> Result<()> {
        let kind = match kind {
            Copy::HostToDevice => sys::CKPT_COPY_HOST_TO_DEVICE,
            Copy::DeviceToHost => sys::CKPT_COPY_DEVICE_TO_HOST,
            Copy::DeviceToDevice => sys::CKPT_COPY_DEVICE_TO_DEVICE,
        };
        check(sys::ckpt_device_copy(self.device.as_ptr(), self.raw, to, from, bytes, kind))
    }

    /// # Safety
    /// `bytes` of the device's memory, until the stream has done it.
    pub unsafe fn fill(&self, data: *mut c_void, value: u8, bytes: usize) -> Result<()> {
        check(sys::ckpt_device_fill(self.device.as_ptr(), self.raw, data, value, bytes))
    }

    /// Draws in device memory: the host's bits.
    ///
    /// # Safety
    /// `out`: `count` elements of the device's memory, until the stream has done it. Here as in the three below.
    pub unsafe fn philox_u32(&self, philox: &Philox, first: u64, count: usize, out: *mut u32) -> Result<()> {
        check(sys::ckpt_device_philox_u32(self.device.as_ptr(), self.raw, &philox.to_raw(), first, count, out))
    }

    /// # Safety
    /// As `philox_u32`.
    pub unsafe fn philox_uniform(&self, philox: &Philox, first: u64, count: usize, out: *mut f32) -> Result<()> {
        check(sys::ckpt_device_philox_uniform(self.device.as_ptr(), self.raw, &philox.to_raw(), first, count, out))
    }

    /// # Safety
    /// As `philox_u32`.
    pub unsafe fn philox_normal(&self, philox: &Philox, first: u64, count: usize, mean: f32, stddev: f32, out: *mut f32) -> Result<()> {
        check(sys::ckpt_device_philox_normal(self.device.as_ptr(), self.raw, &philox.to_raw(), first, count, mean, stddev, out))
    }

    /// # Safety
    /// As `philox_u32`.
    pub unsafe fn philox_bernoulli(&self, philox: &Philox, first: u64, count: usize, probability: f64, out: *mut u8) -> Result<()> {
        check(sys::ckpt_device_philox_bernoulli(self.device.as_ptr(), self.raw, &philox.to_raw(), first, count, probability, out))
    }

    /// From here on work on the stream is noted, not done (CUDA).
    pub fn begin_capture(&self) -> Result<()> {
        check(unsafe { sys::ckpt_device_capture_begin(self.device.as_ptr(), self.raw) })
    }

    /// Ends it, on the thread that began.
    pub fn end_capture(&self) -> Result<Graph> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_device_capture_end(self.device.as_ptr(), self.raw, &mut raw) })?;
        Ok(Graph::from_raw(raw))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { sys::ckpt_device_stream_destroy(self.device.as_ptr(), self.raw) }
    }
}

handle! {
    /// Work that was captured once, to be launched many times.
    Graph, ckpt_graph, ckpt_graph_destroy
}

impl Graph {
    /// # Safety
    /// All memory that the captured work reads and writes is there.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        check(sys::ckpt_graph_launch(self.as_ptr(), stream.as_ptr()))
    }
}

/// Host memory from a device; see `Device::host_memory`.
#[derive(Debug)]
pub struct HostMemory<T: Element> {
    device: Device,
    data: *mut T,
    len: usize,
}

impl<T: Element> HostMemory<T> {
    pub fn as_slice(&self) -> &[T] {
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T: Element> Drop for HostMemory<T> {
    fn drop(&mut self) {
        let bytes = self.len * std::mem::size_of::<T>();
        unsafe { sys::ckpt_device_host_free(self.device.as_ptr(), self.data as *mut c_void, bytes) }
    }
}
