use crate::element::Element;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::rc::Rc;

/// An array in host memory that the library may keep: inputs and their gradients, parameters of layers. A clone is the same array.
///
/// There are no references into it, as the library writes to it: elements are read and written one by one, or copied. As long as a
/// recording has it as input data, writing panics; while a backward runs that writes to it, so does reading. (A panic in a callback is an
/// error of the call that ran it.)
pub struct Shared<T: Element> {
    inner: Rc<Inner<T>>,
}

struct Inner<T> {
    data: UnsafeCell<Box<[T]>>,
    len: usize,
    ptr: *mut T,
    read: Cell<u32>,
    written: Cell<u32>,
    granted: Cell<u32>,
    gradients: Cell<u32>,
    weights: Cell<u32>,
}

/// How a tape locks an array whatever its type.
pub(crate) trait Lock {
    /// How many recordings have it as input data.
    fn read(&self) -> &Cell<u32>;
    /// How many backward passes write to it now.
    fn written(&self) -> &Cell<u32>;
    /// How many recordings have it as the place of an input's gradient.
    fn granted(&self) -> &Cell<u32>;
    /// How many layers and models have it as the place of their gradients, ...
    fn gradients(&self) -> &Cell<u32>;
    /// ... and how many as their parameters.
    fn weights(&self) -> &Cell<u32>;
}

/// What an array is taken for decides what else it can be: nobody writes to it while somebody holds a slice of it.
#[cfg_attr(not(feature = "ops"), allow(dead_code))] // layers take more
pub(crate) mod lock {
    use super::Lock;
    use crate::error::{Error, Result};

    pub fn add(count: &std::cell::Cell<u32>, change: i32) {
        count.set(count.get().wrapping_add(change as u32));
    }

    fn refuse(name: &str, taken: &[(u32, &str)]) -> Result<()> {
        match taken.iter().find(|(count, _)| *count > 0) {
            None => Ok(()),
            Some((_, what)) => Err(Error::argument(format!("{}: this array is {}, expected one of its own", name, what))),
        }
    }

    const INPUT: &str = "a recording's input";
    const GRAD: &str = "where gradients go";
    const WEIGHTS: &str = "a layer's parameters";

    /// Segments will read slices of it.
    pub fn as_input(name: &str, lock: &dyn Lock) -> Result<()> {
        refuse(name, &[(lock.granted().get(), GRAD), (lock.gradients().get(), GRAD)])
    }

    /// Segments will write to slices of it.
    pub fn as_grad(name: &str, lock: &dyn Lock) -> Result<()> {
        refuse(name, &[(lock.read().get(), INPUT), (lock.gradients().get(), GRAD), (lock.weights().get(), WEIGHTS)])
    }

    /// Layers will read it, and initialise and update it.
    pub fn as_weights(name: &str, lock: &dyn Lock) -> Result<()> {
        refuse(name, &[(lock.granted().get(), GRAD), (lock.gradients().get(), GRAD)])
    }

    /// Layers will write to it.
    pub fn as_gradients(name: &str, lock: &dyn Lock) -> Result<()> {
        refuse(name, &[(lock.read().get(), INPUT), (lock.granted().get(), GRAD), (lock.weights().get(), WEIGHTS)])
    }

    /// It is written to now.
    pub fn to_write(name: &str, lock: &dyn Lock) -> Result<()> {
        refuse(name, &[(lock.read().get(), INPUT), (lock.written().get(), GRAD)])
    }
}

impl<T: Element> Lock for Inner<T> {
    fn read(&self) -> &Cell<u32> {
        &self.read
    }
    fn written(&self) -> &Cell<u32> {
        &self.written
    }
    fn granted(&self) -> &Cell<u32> {
        &self.granted
    }
    fn gradients(&self) -> &Cell<u32> {
        &self.gradients
    }
    fn weights(&self) -> &Cell<u32> {
        &self.weights
    }
}

impl<T: Element> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<T: Element> From<Vec<T>> for Shared<T> {
    fn from(values: Vec<T>) -> Self {
        let mut values = values.into_boxed_slice();
        let (ptr, len) = (values.as_mut_ptr(), values.len());
        let zero = || Cell::new(0);
        let inner = Inner {
            data: UnsafeCell::new(values),
            len,
            ptr,
            read: zero(),
            written: zero(),
            granted: zero(),
            gradients: zero(),
            weights: zero(),
        };
        Self { inner: Rc::new(inner) }
    }
}

impl<T: Element> Shared<T> {
    pub fn filled(len: usize, value: T) -> Self {
        Self::from(vec![value; len])
    }

    pub fn len(&self) -> usize {
        self.inner.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        self.len() * std::mem::size_of::<T>()
    }

    /// The address, as long as a clone lives.
    pub fn as_ptr(&self) -> *mut T {
        self.inner.ptr
    }

    pub(crate) fn lock(&self) -> Rc<dyn Lock> {
        self.inner.clone()
    }

    fn for_reading(&self) {
        if self.inner.written.get() > 0 {
            panic!("this array is written to by the backward pass that runs: it cannot be read now");
        }
    }

    pub(crate) fn for_writing(&self) {
        self.for_reading();
        if self.inner.read.get() > 0 {
            panic!("this array is the input of a recording: it cannot change until the recording ends");
        }
    }

    pub fn get(&self, index: usize) -> T {
        self.for_reading();
        assert!(index < self.len(), "index {} of an array of {}", index, self.len());
        unsafe { *self.inner.ptr.add(index) }
    }

    pub fn set(&self, index: usize, value: T) {
        self.for_writing();
        assert!(index < self.len(), "index {} of an array of {}", index, self.len());
        unsafe { *self.inner.ptr.add(index) = value }
    }

    pub fn fill(&self, value: T) {
        self.for_writing();
        for k in 0..self.len() {
            unsafe { *self.inner.ptr.add(k) = value }
        }
    }

    /// Each element becomes f(index, itself).
    pub fn update(&self, mut f: impl FnMut(usize, T) -> T) {
        for k in 0..self.len() {
            let value = f(k, self.get(k));
            self.set(k, value);
        }
    }

    pub fn copy_from(&self, values: &[T]) {
        self.for_writing();
        assert_eq!(values.len(), self.len(), "lengths differ");
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.inner.ptr, values.len()) }
    }

    pub fn to_vec(&self) -> Vec<T> {
        self.for_reading();
        let mut values = Vec::with_capacity(self.len());
        unsafe {
            std::ptr::copy_nonoverlapping(self.inner.ptr, values.as_mut_ptr(), self.len());
            values.set_len(self.len());
        }
        values
    }

    /// The array itself, where this is the only clone.
    pub fn into_inner(self) -> Result<Vec<T>, Self> {
        match Rc::try_unwrap(self.inner) {
            Ok(inner) => Ok(inner.data.into_inner().into_vec()),
            Err(inner) => Err(Self { inner }),
        }
    }
}

impl<T: Element> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared<{}>[{}]", std::any::type_name::<T>(), self.len())
    }
}
