//! Loops over squares and channels: batch norm with activation, forwards and backwards.
//!
//! A square is a row of `channels` floats, a multiple of 16.

use super::vector::Vector;
use super::{Call, Kernel, LANES};

/// Batch norm as an affine function of each channel, followed by ReLU.
#[derive(Clone, Copy, Debug)]
pub struct Activate<'a> {
    /// Factor of each channel.
    pub scale: &'a [f32],
    /// Term of each channel.
    pub shift: &'a [f32],
    /// Added before the activation.
    pub residual: Option<&'a [f32]>,
}

/// Batch norm backwards: out = derivative × `gain` + raw × `slope` + `offset`.
#[derive(Clone, Copy, Debug)]
pub struct NormBack<'a> {
    /// Factor of the derivative.
    pub gain: &'a [f32],
    /// Factor of the convolution's result.
    pub slope: &'a [f32],
    /// Constant term.
    pub offset: &'a [f32],
}

impl Kernel {
    /// Sets `out` to the activation of `raw`.
    pub(in crate::residual) fn activate(self, raw: &[f32], by: Activate, out: &mut [f32]) {
        let channels = by.scale.len();
        check(raw.len(), channels);
        assert!(by.shift.len() == channels && out.len() == raw.len());
        match by.residual {
            Some(residual) => {
                assert_eq!(residual.len(), raw.len());
                self.run(Line::<3> {
                    inputs: [raw, residual],
                    factors: [by.scale, by.shift, by.shift],
                    out,
                });
            }
            None => {
                let factors = [by.scale, by.shift, by.shift];
                self.run(Line::<2> { inputs: [raw, raw], factors, out });
            }
        }
    }

    /// Sets `out` to the derivative by the raw result; see [`NormBack`].
    pub(in crate::residual) fn norm_back(
        self,
        derivative: &[f32],
        raw: &[f32],
        by: NormBack,
        out: &mut [f32],
    ) {
        let channels = by.gain.len();
        check(raw.len(), channels);
        assert!(by.slope.len() == channels && by.offset.len() == channels);
        assert!(derivative.len() == raw.len() && out.len() == raw.len());
        let factors = [by.gain, by.slope, by.offset];
        self.run(Line::<1> { inputs: [derivative, raw], factors, out });
    }

    /// Sets `derivative` to 0 where `gate` is not above 0.
    pub(in crate::residual) fn mask(self, derivative: &mut [f32], gate: &[f32]) {
        assert!(gate.len() == derivative.len() && gate.len().is_multiple_of(LANES));
        self.run(Mask { derivative, gate, added: None });
    }

    /// Adds to `derivative`, then sets it to 0 where `gate` is not above 0.
    pub(in crate::residual) fn add_mask(self, derivative: &mut [f32], added: &[f32], gate: &[f32]) {
        assert!(gate.len() == derivative.len() && gate.len().is_multiple_of(LANES));
        assert_eq!(added.len(), gate.len());
        self.run(Mask { derivative, gate, added: Some(added) });
    }

    /// For each channel, adds the sum of `values` to the first half of `totals`, and the sum of
    /// `values` × (`others` - `centre`) to the second half.
    pub(in crate::residual) fn channel_sums(
        self,
        values: &[f32],
        others: &[f32],
        centre: &[f32],
        totals: &mut [f64],
    ) {
        check(values.len(), centre.len());
        assert!(others.len() == values.len() && totals.len() == 2 * centre.len());
        self.run(Sums { values, others, centre, totals });
    }
}

fn check(len: usize, channels: usize) {
    assert!(channels > 0 && channels.is_multiple_of(LANES), "{channels} channels");
    assert!(len.is_multiple_of(channels), "{len} numbers of {channels} channels");
}

/// KIND 1: a f0 + b f1 + f2. 2: a f0 + f1, activated. 3: a f0 + f1 + b, activated.
struct Line<'a, const KIND: usize> {
    inputs: [&'a [f32]; 2],
    factors: [&'a [f32]; 3],
    out: &'a mut [f32],
}

impl<const KIND: usize> Call for Line<'_, KIND> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let channels = self.factors[0].len();
        let [a, b] = self.inputs.map(<[f32]>::as_ptr);
        let [f0, f1, f2] = self.factors.map(<[f32]>::as_ptr);
        let out = self.out.as_mut_ptr();
        for square in 0..self.out.len() / channels {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: all slices are as long as `out`, there is a factor for each channel, and
                // both lengths are multiples of 16.
                unsafe {
                    let offset = square * channels + channel;
                    let a = V::load(a.add(offset));
                    let f0 = V::load(f0.add(channel));
                    let f1 = V::load(f1.add(channel));
                    let result = match KIND {
                        1 => {
                            let term = V::load(b.add(offset)).mul_add(f1, V::load(f2.add(channel)));
                            a.mul_add(f0, term)
                        }
                        2 => a.mul_add(f0, f1).max(V::splat(0.0)),
                        _ => a.mul_add(f0, f1).add(V::load(b.add(offset))).max(V::splat(0.0)),
                    };
                    result.store(out.add(offset));
                }
                channel += V::LANES;
            }
        }
    }
}

struct Mask<'a> {
    derivative: &'a mut [f32],
    gate: &'a [f32],
    added: Option<&'a [f32]>,
}

impl Call for Mask<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let mut offset = 0;
        while offset < self.derivative.len() {
            // SAFETY: all have the same length, a multiple of 16.
            unsafe {
                let to = self.derivative.as_mut_ptr().add(offset);
                let mut value = V::load(to);
                if let Some(added) = self.added {
                    value = value.add(V::load(added.as_ptr().add(offset)));
                }
                value.where_positive(V::load(self.gate.as_ptr().add(offset))).store(to);
            }
            offset += V::LANES;
        }
    }
}

struct Sums<'a> {
    values: &'a [f32],
    others: &'a [f32],
    centre: &'a [f32],
    totals: &'a mut [f64],
}

impl Call for Sums<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let channels = self.centre.len();
        let squares = self.values.len() / channels;
        let mut channel = 0;
        while channel < channels {
            let mut lanes = [[0.0f32; LANES]; 2];
            // SAFETY: values and others have squares × channels elements; channels and lanes are
            // multiples of a vector.
            unsafe {
                let values = self.values.as_ptr().add(channel);
                let others = self.others.as_ptr().add(channel);
                let centre = V::load(self.centre.as_ptr().add(channel));
                // Four accumulators each, because an addition takes several cycles.
                let mut sums = [V::splat(0.0); 4];
                let mut products = [V::splat(0.0); 4];
                for first in (0..squares).step_by(4) {
                    for turn in 0..4 {
                        if first + turn < squares {
                            let offset = (first + turn) * channels;
                            let value = V::load(values.add(offset));
                            let other = V::load(others.add(offset)).sub(centre);
                            sums[turn] = sums[turn].add(value);
                            products[turn] = value.mul_add(other, products[turn]);
                        }
                    }
                }
                let sum = sums[0].add(sums[1]).add(sums[2].add(sums[3]));
                sum.store(lanes[0].as_mut_ptr());
                let sum = products[0].add(products[1]).add(products[2].add(products[3]));
                sum.store(lanes[1].as_mut_ptr());
            }
            for (half, lanes) in lanes.iter().enumerate() {
                let totals = &mut self.totals[half * channels + channel..];
                for (total, lane) in totals.iter_mut().zip(&lanes[..V::LANES]) {
                    *total += f64::from(*lane);
                }
            }
            channel += V::LANES;
        }
    }
}
