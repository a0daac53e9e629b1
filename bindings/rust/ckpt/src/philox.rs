use crate::error::{check, Error, Result};
use crate::sys;
use std::ptr;

/// A snapshot of the generator: draws are a function of it and the element's number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    pub seed: u64,
    pub subsequence: u64,
    pub offset: u64,
    /// A device's word that is added to the subsequence there (captured graphs); 0: none.
    step_word: usize,
}

impl Philox {
    pub fn new(seed: u64, subsequence: u64, offset: u64) -> Self {
        Self { seed, subsequence, offset, step_word: 0 }
    }

    /// Packs (seed, step, segment, site): what `Frame::random` gives.
    pub fn pack(seed: u64, step: u64, segment: u64, site: u32) -> Result<Self> {
        let mut raw = sys::ckpt_philox::default();
        check(unsafe { sys::ckpt_philox_pack(seed, step, segment, site, &mut raw) })?;
        Ok(Self::from_raw(&raw))
    }

    pub(crate) fn from_raw(raw: &sys::ckpt_philox) -> Self {
        Self { seed: raw.seed, subsequence: raw.subsequence, offset: raw.offset, step_word: raw.step_word as usize }
    }

    /// For kernels of one's own.
    pub fn to_raw(&self) -> sys::ckpt_philox {
        sys::ckpt_philox { seed: self.seed, subsequence: self.subsequence, offset: self.offset, step_word: self.step_word as *const u64 }
    }

    /// For fills here, where a device's word cannot be read.
    fn on_host(&self) -> Result<sys::ckpt_philox> {
        if self.step_word != 0 {
            return Err(Error::argument("philox: its step word is memory of a device, expected a snapshot without one"));
        }
        Ok(self.to_raw())
    }

    /// One block of philox 4x32-10.
    pub fn block(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
        let mut out = [0; 4];
        unsafe { sys::ckpt_philox_block(counter.as_ptr(), key.as_ptr(), out.as_mut_ptr()) };
        out
    }

    /// Words first, first + 1, ...
    pub fn fill_u32(&self, first: u64, out: &mut [u32]) -> Result<()> {
        check(unsafe { sys::ckpt_philox_u32(&self.on_host()?, first, out.len(), out.as_mut_ptr()) })
    }

    /// Uniform in (0, 1].
    pub fn fill_uniform(&self, first: u64, out: &mut [f32]) -> Result<()> {
        check(unsafe { sys::ckpt_philox_uniform(&self.on_host()?, first, out.len(), out.as_mut_ptr()) })
    }

    pub fn fill_normal(&self, first: u64, mean: f32, stddev: f32, out: &mut [f32]) -> Result<()> {
        check(unsafe { sys::ckpt_philox_normal(&self.on_host()?, first, out.len(), mean, stddev, out.as_mut_ptr()) })
    }

    /// Bytes: 1 with the given probability, else 0.
    pub fn fill_bernoulli(&self, first: u64, probability: f64, out: &mut [u8]) -> Result<()> {
        check(unsafe { sys::ckpt_philox_bernoulli(&self.on_host()?, first, out.len(), probability, out.as_mut_ptr()) })
    }

    /// The integer threshold of a probability: u64::MAX outside [0, 1].
    pub fn threshold(probability: f64) -> u64 {
        unsafe { sys::ckpt_philox_threshold(probability) }
    }
}

handle! {
    /// A generator with a state, for interplay with cuRAND's and PyTorch's.
    Rng, ckpt_rng, ckpt_rng_destroy
}

unsafe impl Send for Rng {}

impl Rng {
    pub fn new(seed: u64, subsequence: u64, offset: u64) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_rng_create(seed, subsequence, offset, &mut raw) })?;
        Ok(Self::from_raw(raw))
    }

    pub fn snapshot(&self) -> Result<Philox> {
        let mut raw = sys::ckpt_philox::default();
        check(unsafe { sys::ckpt_rng_snapshot(self.as_ptr(), &mut raw) })?;
        Ok(Philox::from_raw(&raw))
    }

    pub fn restore(&mut self, snapshot: &Philox) -> Result<()> {
        check(unsafe { sys::ckpt_rng_restore(self.as_ptr(), &snapshot.to_raw()) })
    }

    /// Moves on by `words`, rounded up to a multiple of 4 as PyTorch does if asked.
    pub fn advance(&mut self, words: u64, round_up_to_4: bool) -> Result<()> {
        check(unsafe { sys::ckpt_rng_advance(self.as_ptr(), words, round_up_to_4 as u32) })
    }
}
