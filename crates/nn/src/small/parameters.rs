//! All weights of a network in one vector with named parts.

use std::sync::Arc;

use selfmate_chess::Rng;

/// Names, shapes and ranges of the parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    parts: Vec<Part>,
    length: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Part {
    name: String,
    shape: Vec<usize>,
    first: usize,
    length: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    layout: Arc<Layout>,
    /// All numbers, part after part.
    pub values: Vec<f32>,
}

impl Layout {
    /// Parts with these names and shapes, one after the other.
    pub fn new(shapes: &[(&str, &[usize])]) -> Arc<Layout> {
        let mut length = 0;
        let parts = shapes
            .iter()
            .map(|&(name, shape)| {
                let part = Part {
                    name: name.to_owned(),
                    shape: shape.to_vec(),
                    first: length,
                    length: shape.iter().product(),
                };
                length += part.length;
                part
            })
            .collect();
        Arc::new(Layout { parts, length })
    }
}

impl Parameters {
    pub fn zeros(layout: &Arc<Layout>) -> Parameters {
        Parameters { values: vec![0.0; layout.length], layout: Arc::clone(layout) }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// A part by its index in the layout.
    pub fn part(&self, index: usize) -> &[f32] {
        let part = &self.layout.parts[index];
        &self.values[part.first..][..part.length]
    }

    /// A mutable part by its index in the layout.
    pub fn part_mut(&mut self, index: usize) -> &mut [f32] {
        let part = &self.layout.parts[index];
        &mut self.values[part.first..][..part.length]
    }

    /// All parts, mutable, in the order of the layout.
    pub fn parts_mut(&mut self) -> Vec<&mut [f32]> {
        let mut rest = self.values.as_mut_slice();
        let mut parts = Vec::with_capacity(self.layout.parts.len());
        for part in &self.layout.parts {
            let (head, tail) = rest.split_at_mut(part.length);
            parts.push(head);
            rest = tail;
        }
        parts
    }

    /// Fills a part with normal noise of variance 2 / `inputs`, times `scale`. This suits layers
    /// followed by ReLU (He et al. 2015).
    pub fn randomise(&mut self, index: usize, inputs: usize, scale: f32, rng: &mut Rng) {
        let spread = scale * (2.0 / inputs as f32).sqrt();
        for value in self.part_mut(index) {
            *value = spread * rng.normal() as f32;
        }
    }

    /// Names, shapes and values of all parts.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        let values = |part: &Part| &self.values[part.first..][..part.length];
        self.layout
            .parts
            .iter()
            .map(move |part| (part.name.as_str(), part.shape.as_slice(), values(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_stored_one_after_the_other() {
        let layout = Layout::new(&[("a", &[2, 3]), ("b", &[4])]);
        let mut parameters = Parameters::zeros(&layout);
        parameters.part_mut(1).fill(2.0);
        parameters.parts_mut()[0].fill(1.0);
        assert_eq!(parameters.values, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
        let names: Vec<_> = parameters.tensors().map(|(name, shape, _)| (name, shape)).collect();
        assert_eq!(names, [("a", &[2, 3][..]), ("b", &[4][..])]);
    }
}
