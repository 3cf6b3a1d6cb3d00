//! The replay buffer: the latest positions with their results, about a hundred bytes each.

use std::collections::BTreeMap;

use selfmate_chess::{Chess, Color, Position, Rng, Role};

/// A position and the return of the game for its side to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredPosition {
    /// White's pieces by kind, then Black's.
    boards: [u64; 12],
    white_moves: bool,
    /// From -1 to 1.
    result: f32,
}

const BYTES: usize = 12 * 8 + 1 + 4;

impl StoredPosition {
    pub fn new(position: &Chess, result: f32) -> StoredPosition {
        let mut boards = [0; 12];
        let board = position.board();
        let pieces = Color::ALL.into_iter().flat_map(|color| Role::ALL.map(|role| (color, role)));
        for (word, (color, role)) in boards.iter_mut().zip(pieces) {
            *word = (board.by_color(color) & board.by_role(role)).0;
        }
        StoredPosition { boards, white_moves: position.turn() == Color::White, result }
    }

    pub fn result(&self) -> f32 {
        self.result
    }

    /// The same position or one of its mirror images: files mirrored, colours exchanged, or both.
    /// Castling apart, the rules are symmetric, so the result is the same.
    pub fn image(&self, rng: &mut Rng) -> StoredPosition {
        let mut image = *self;
        if rng.chance(0.5) {
            image.boards = image.boards.map(|word| word.swap_bytes().reverse_bits());
        }
        if rng.chance(0.5) {
            image.boards.rotate_left(6);
            image.boards = image.boards.map(u64::swap_bytes);
            image.white_moves = !image.white_moves;
        }
        image
    }

    /// Appends the planes of the encoding `planes13`.
    pub fn planes(&self, planes: &mut Vec<f32>) {
        for word in self.boards {
            planes.extend((0..64).map(|square| (word >> square & 1) as f32));
        }
        let turn = if self.white_moves { 1.0 } else { 0.0 };
        planes.extend(std::iter::repeat_n(turn, 64));
    }
}

/// The latest positions; a full buffer overwrites the oldest.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayBuffer {
    positions: Vec<StoredPosition>,
    capacity: usize,
    /// Where the next position goes once the buffer is full.
    next: usize,
}

impl ReplayBuffer {
    pub fn new(capacity: usize) -> ReplayBuffer {
        ReplayBuffer { positions: Vec::new(), capacity: capacity.max(1), next: 0 }
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    pub fn push(&mut self, position: StoredPosition) {
        if self.positions.len() < self.capacity {
            self.positions.push(position);
        } else {
            self.positions[self.next] = position;
            self.next = (self.next + 1) % self.capacity;
        }
    }

    /// Draws with replacement.
    pub fn draw(&self, count: usize, rng: &mut Rng) -> Vec<StoredPosition> {
        (0..count).filter_map(|_| rng.choose(&self.positions).copied()).collect()
    }

    /// Draws without replacement: no place of the buffer twice, and at most all of them.
    pub fn draw_distinct(&self, count: usize, rng: &mut Rng) -> Vec<StoredPosition> {
        // The first steps of a Fisher-Yates shuffle; `moved` has the places that are not their own.
        let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
        let length = self.positions.len();
        let draw = |first: usize| {
            let other = first + rng.below(length - first);
            let at = |place: usize| moved.get(&place).copied().unwrap_or(place);
            let (drawn, left) = (at(other), at(first));
            moved.insert(other, left);
            self.positions[drawn]
        };
        (0..count.min(length)).map(draw).collect()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + BYTES * self.positions.len());
        bytes.extend((self.next as u64).to_le_bytes());
        for position in &self.positions {
            bytes.extend(position.boards.iter().flat_map(|word| word.to_le_bytes()));
            bytes.push(u8::from(position.white_moves));
            bytes.extend(position.result.to_le_bytes());
        }
        bytes
    }

    /// Reads the output of [`ReplayBuffer::encode`]; the error says what is wrong with the bytes.
    pub fn decode(bytes: &[u8], capacity: usize) -> Result<ReplayBuffer, String> {
        let (next, rest) = bytes.split_at_checked(8).ok_or("no bytes")?;
        let next = u64::from_le_bytes(next.try_into().expect("eight bytes"));
        let (records, left) = rest.as_chunks::<BYTES>();
        let next = usize::try_from(next).ok().filter(|next| *next < capacity.max(1));
        let Some(next) = next.filter(|_| left.is_empty() && records.len() <= capacity) else {
            return Err(format!("{} bytes: expected {BYTES} for each position", bytes.len()));
        };
        let position = |record: &[u8; BYTES]| {
            let (words, rest) = record.split_at(12 * 8);
            let (words, _) = words.as_chunks::<8>();
            let mut boards = [0; 12];
            for (board, word) in boards.iter_mut().zip(words) {
                *board = u64::from_le_bytes(*word);
            }
            let result = f32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]);
            StoredPosition { boards, white_moves: rest[0] == 1, result }
        };
        Ok(ReplayBuffer { positions: records.iter().map(position).collect(), capacity, next })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};
    use selfmate_encode::Planes;

    use super::*;

    fn positions(count: usize) -> Vec<(StoredPosition, Game)> {
        let mut rng = Seed::new(1).rng();
        let mut game = Game::new();
        (0..count)
            .map(|number| {
                if game.outcome().is_some() {
                    game = Game::new();
                }
                let legal = game.legal_moves();
                game.play_unchecked(legal[rng.below(legal.len())]);
                (
                    StoredPosition::new(game.position(), (number % 3) as f32 / 2.0 - 0.5),
                    game.clone(),
                )
            })
            .collect()
    }

    #[test]
    fn planes_equal_those_of_the_encoding() {
        for (position, game) in positions(50) {
            let mut planes = Vec::new();
            position.planes(&mut planes);
            assert_eq!(planes, Planes::Planes13.encoded(&game));
        }
    }

    #[test]
    fn all_four_mirror_images_are_drawn() {
        let position =
            |fen| StoredPosition::new(&selfmate_chess::fen::parse_fen(fen).unwrap(), 1.0);
        let images = [
            position("4k3/8/8/8/8/8/P7/R3K3 w - - 0 1"),
            position("3k4/8/8/8/8/8/7P/3K3R w - - 0 1"),
            position("r3k3/p7/8/8/8/8/8/4K3 b - - 0 1"),
            position("3k3r/7p/8/8/8/8/8/3K4 b - - 0 1"),
        ];
        let mut rng = Seed::new(3).rng();
        let mut seen = [0; 4];
        for _ in 0..100 {
            let image = images[0].image(&mut rng);
            seen[images.iter().position(|other| *other == image).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    }

    #[test]
    fn a_full_buffer_overwrites_the_oldest_and_round_trips() {
        let all = positions(25);
        let mut replay = ReplayBuffer::new(10);
        for (position, _) in &all {
            replay.push(*position);
        }
        assert_eq!(replay.len(), 10);
        let latest: Vec<StoredPosition> = all[15..].iter().map(|(position, _)| *position).collect();
        assert!(replay.positions.iter().all(|position| latest.contains(position)));
        let bytes = replay.encode();
        assert_eq!(ReplayBuffer::decode(&bytes, 10).unwrap(), replay);
        assert!(ReplayBuffer::decode(&bytes[..bytes.len() - 1], 10).is_err());
        assert!(ReplayBuffer::decode(&bytes, 5).is_err() && ReplayBuffer::decode(&[], 5).is_err());
        assert_eq!(replay.draw(30, &mut Seed::new(2).rng()).len(), 30);
    }

    #[test]
    fn draws_without_replacement_have_no_place_twice_and_every_place_equally_often() {
        let mut replay = ReplayBuffer::new(20);
        // Positions that differ in one word, so that places can be told apart.
        for place in 0..20 {
            let mut position = StoredPosition::new(&Chess::default(), 0.0);
            position.boards[0] = place;
            replay.push(position);
        }
        let mut rng = Seed::new(5).rng();
        let mut drawn = [0; 20];
        for _ in 0..2000 {
            let places: Vec<u64> = replay
                .draw_distinct(5, &mut rng)
                .iter()
                .map(|position| position.boards[0])
                .collect();
            places.iter().for_each(|place| drawn[*place as usize] += 1);
            let distinct: std::collections::HashSet<&u64> = places.iter().collect();
            assert_eq!((places.len(), distinct.len()), (5, 5));
        }
        assert!(drawn.iter().all(|count| (400..600).contains(count)), "{drawn:?}");
        assert_eq!(replay.draw_distinct(30, &mut rng).len(), 20);
    }
}
