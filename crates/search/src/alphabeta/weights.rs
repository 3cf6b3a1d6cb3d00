//! The weights of the evaluation: every number that tuning may change, in one table.
//!
//! [`Weights`] is a set of named terms, each with a middlegame and an endgame half. The table at
//! the bottom is the only list of them: it generates the fields, the defaults, the bounds and the
//! flat view that the tuning learners use. [`super::eval`] defines what the terms mean.
//!
//! The defaults were set by hand, then tuned by Texel's method on self-play positions. The target
//! is nine tenths the score of a small search and one tenth the game result, with a pull towards
//! the initial values.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pair::Pair;
use super::squares;

/// One term of the evaluation: `N` values for the middlegame and `N` for the endgame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term<const N: usize> {
    /// With all pieces on the board.
    pub mg: [i32; N],
    /// With kings and pawns only.
    pub eg: [i32; N],
}

impl<const N: usize> Term<N> {
    const fn new(mg: [i32; N], eg: [i32; N]) -> Term<N> {
        Term { mg, eg }
    }

    const fn both(values: [i32; N]) -> Term<N> {
        Term { mg: values, eg: values }
    }

    pub(super) fn at(&self, index: usize) -> Pair {
        Pair::new(self.mg[index], self.eg[index])
    }
}

/// How the entries of a term are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    One,
    /// Pawn to queen.
    Role,
    /// Knight to queen.
    Piece,
    /// The squares of a diagram seen by White, a8 first.
    Square,
    /// Ranks seen from the owner's side.
    Rank,
    /// A number of squares, or one of a few cases.
    Count,
}

impl Label {
    fn name(self, index: usize) -> String {
        const ROLES: [&str; 5] = ["pawn", "knight", "bishop", "rook", "queen"];
        match self {
            Label::One => String::new(),
            Label::Role => format!(".{}", ROLES[index]),
            Label::Piece => format!(".{}", ROLES[index + 1]),
            Label::Square => {
                format!(".{}{}", char::from(b'a' + (index % 8) as u8), 8 - index / 8)
            }
            Label::Rank => format!(".rank{}", index + 1),
            Label::Count => format!(".{index}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightInfo {
    /// For example `knight_square.mg.f3` or `bishop_pair.eg`.
    pub name: String,
    /// The value in [`Weights::default`].
    pub default: i32,
    /// The smallest sensible value.
    pub min: i32,
    /// The largest sensible value.
    pub max: i32,
}

struct Group {
    name: &'static str,
    len: usize,
    label: Label,
    min: i32,
    max: i32,
}

impl Weights {
    /// Piece values 100/320/330/500/900 and one piece-square table per piece (two for the king).
    /// All other terms are zero. The classic start for tuning.
    pub fn plain() -> Weights {
        let mut weights = Weights::default();
        for value in weights.flat_mut() {
            *value = 0;
        }
        weights.piece_value = Term::both([100, 320, 330, 500, 900]);
        weights.pawn_square = Term::both(squares::PLAIN_PAWN);
        weights.knight_square = Term::both(squares::PLAIN_KNIGHT);
        weights.bishop_square = Term::both(squares::PLAIN_BISHOP);
        weights.rook_square = Term::both(squares::PLAIN_ROOK);
        weights.queen_square = Term::both(squares::PLAIN_QUEEN);
        weights.king_square = Term::new(squares::PLAIN_KING_MG, squares::PLAIN_KING_EG);
        weights
    }

    pub fn count() -> usize {
        Weights::GROUPS.iter().map(|group| 2 * group.len).sum()
    }

    /// Name, default and bounds of every weight, in the order of the flat view.
    pub fn table() -> Vec<WeightInfo> {
        let mut defaults = Weights::default().flat().into_iter();
        let mut rows = Vec::with_capacity(Weights::count());
        for group in Weights::GROUPS {
            for phase in ["mg", "eg"] {
                for index in 0..group.len {
                    rows.push(WeightInfo {
                        name: format!("{}.{phase}{}", group.name, group.label.name(index)),
                        default: defaults.next().expect("the flat view has every weight"),
                        min: group.min,
                        max: group.max,
                    });
                }
            }
        }
        rows
    }
}

impl<const N: usize> Serialize for Term<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Halves { mg: self.mg.to_vec(), eg: self.eg.to_vec() }.serialize(serializer)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Term<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Term<N>, D::Error> {
        let halves = Halves::deserialize(deserializer)?;
        let fixed = |values: Vec<i32>| {
            let got = values.len();
            <[i32; N]>::try_from(values)
                .map_err(|_| D::Error::custom(format!("expected {N} weights, got {got}")))
        };
        Ok(Term { mg: fixed(halves.mg)?, eg: fixed(halves.eg)? })
    }
}

/// A term as stored in files; serde does not support arrays of 64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Halves {
    mg: Vec<i32>,
    eg: Vec<i32>,
}

macro_rules! weights {
    ($($(#[$doc:meta])* $name:ident[$len:literal] by $label:ident in $min:literal..=$max:literal: $default:expr;)*) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Weights {
            $($(#[$doc])* pub $name: Term<$len>,)*
        }

        impl Default for Weights {
            /// The full, tuned evaluation.
            fn default() -> Weights {
                Weights { $($name: $default,)* }
            }
        }

        impl Weights {
            const GROUPS: &'static [Group] = &[
                $(Group { name: stringify!($name), len: $len, label: Label::$label, min: $min, max: $max },)*
            ];

            /// All weights in the order of [`Weights::table`].
            pub fn flat(&self) -> Vec<i32> {
                let mut flat = Vec::with_capacity(Weights::count());
                $(flat.extend_from_slice(&self.$name.mg); flat.extend_from_slice(&self.$name.eg);)*
                flat
            }

            /// Mutable references to all weights in the order of [`Weights::table`].
            pub fn flat_mut(&mut self) -> Vec<&mut i32> {
                let mut flat = Vec::with_capacity(Weights::count());
                $(flat.extend(self.$name.mg.iter_mut()); flat.extend(self.$name.eg.iter_mut());)*
                flat
            }
        }
    };
}

weights! {
    /// The worth of a pawn, knight, bishop, rook and queen.
    piece_value[5] by Role in 0..=2000: Term::new([84, 326, 337, 455, 987], [112, 322, 336, 568, 1033]);
    /// The worth of a square for a pawn.
    pawn_square[64] by Square in -200..=250: Term::new(squares::PAWN_MG, squares::PAWN_EG);
    /// The worth of a square for a knight.
    knight_square[64] by Square in -200..=200: Term::new(squares::KNIGHT_MG, squares::KNIGHT_EG);
    /// The worth of a square for a bishop.
    bishop_square[64] by Square in -200..=200: Term::new(squares::BISHOP_MG, squares::BISHOP_EG);
    /// The worth of a square for a rook.
    rook_square[64] by Square in -200..=200: Term::new(squares::ROOK_MG, squares::ROOK_EG);
    /// The worth of a square for a queen.
    queen_square[64] by Square in -200..=200: Term::new(squares::QUEEN_MG, squares::QUEEN_EG);
    /// The worth of a square for the king.
    king_square[64] by Square in -200..=200: Term::new(squares::KING_MG, squares::KING_EG);
    /// A knight's free squares.
    knight_mobility[9] by Count in -100..=100: Term::new(
        [-42, -24, -11, -3, 5, 11, 17, 26, 30],
        [-50, -37, -18, 6, 12, 14, 20, 21, 18]);
    /// A bishop's free squares.
    bishop_mobility[14] by Count in -100..=150: Term::new(
        [-27, -13, 0, 7, 12, 17, 20, 20, 22, 22, 29, 41, 43, 44],
        [-48, -28, -9, 2, 13, 23, 26, 29, 33, 33, 35, 33, 38, 38]);
    /// A rook's free squares.
    rook_mobility[15] by Count in -100..=150: Term::new(
        [-37, -21, -6, -5, -1, -1, -1, 6, 7, 8, 14, 15, 17, 20, 24],
        [-53, -28, -4, 3, 16, 27, 38, 39, 46, 50, 49, 54, 58, 56, 55]);
    /// A queen's free squares.
    queen_mobility[28] by Count in -100..=150: Term::new(
        [-20, -8, -11, -1, -2, -2, -1, 2, 1, 4, 5, 5, 10, 9, 10, 15, 12, 13, 17, 16,
         17, 18, 18, 20, 21, 22, 23, 24],
        [-50, -40, -32, -27, -22, -15, -11, -5, 1, 9, 15, 17, 22, 30, 34, 36, 38,
         40, 45, 44, 48, 46, 48, 51, 53, 55, 58, 59]);
    /// Two bishops.
    bishop_pair[1] by One in 0..=150: Term::new([23], [54]);
    /// A rook on a file without pawns.
    rook_open_file[1] by One in -50..=100: Term::new([33], [2]);
    /// A rook on a file without own pawns.
    rook_half_open_file[1] by One in -50..=100: Term::new([14], [16]);
    /// A rook on its seventh rank.
    rook_on_seventh[1] by One in -50..=100: Term::new([7], [21]);
    /// A knight or bishop on a square that no enemy pawn can ever attack and an own pawn guards.
    outpost[2] by Count in -50..=100: Term::new([32, 22], [11, 6]);
    /// A pawn behind another of its colour.
    doubled[1] by One in -100..=50: Term::new([-10], [-12]);
    /// A pawn without own pawns on the files beside it.
    isolated[1] by One in -100..=50: Term::new([-12], [-16]);
    /// A pawn that its neighbours have left behind and that cannot advance safely.
    backward[1] by One in -100..=50: Term::new([-5], [-19]);
    /// A pawn beside another or guarded by one, by its rank.
    connected[8] by Rank in -50..=200: Term::new([0, 4, 10, 12, 18, 44, 83, 0], [0, 1, 4, 9, 19, 45, 75, 0]);
    /// A pawn that no enemy pawn can stop any more, by its rank.
    passed[8] by Rank in -50..=300: Term::new([0, 2, 1, 1, 22, 45, 91, 0], [0, 15, 21, 28, 65, 109, 167, 0]);
    /// A passed pawn whose next square is taken.
    passed_blocked[1] by One in -100..=50: Term::new([-11], [-21]);
    /// A passed pawn whose next square is safe.
    passed_safe[1] by One in -50..=100: Term::new([-3], [25]);
    /// For each step between a passed pawn's next square and its own king.
    passed_own_king[1] by One in -50..=50: Term::new([0], [-7]);
    /// For each step between a passed pawn's next square and the enemy king.
    passed_enemy_king[1] by One in -50..=50: Term::new([-1], [13]);
    /// The rank of the own pawn in front of the king, on each of three files; rank 1 means none.
    shelter[8] by Rank in -100..=100: Term::new([-20, 23, 13, 6, -10, -14, -11, 0], [3, -1, -1, -2, -4, 3, 3, 0]);
    /// The rank (from the king's side) of the enemy pawn that comes closest on each of three files.
    storm[8] by Rank in -100..=100: Term::new([-5, 4, -21, -12, -3, 3, 1, 0], [-3, 8, 6, -4, -3, -2, -2, 0]);
    /// Danger units for each piece that attacks the squares around the enemy king.
    king_attacker[4] by Piece in 0..=150: Term::new([18, 16, 24, 24], [12, 9, 4, 19]);
    /// Danger units for each attack on a square around the enemy king.
    king_ring_attack[1] by One in 0..=100: Term::new([7], [5]);
    /// Danger units for each kind of piece that could give check safely.
    king_safe_check[4] by Piece in 0..=250: Term::new([61, 29, 59, 54], [15, 13, 21, 25]);
    /// Danger units taken away when the attacker has no queen.
    king_no_queen[1] by One in -300..=0: Term::new([-85], [-14]);
    /// A piece (no pawn or king) that a pawn attacks.
    threat_by_pawn[1] by One in 0..=200: Term::new([62], [29]);
    /// A rook or queen that a minor piece attacks.
    threat_by_minor[2] by Count in 0..=200: Term::new([49, 39], [20, 22]);
    /// A queen that a rook attacks.
    threat_by_rook[1] by One in 0..=200: Term::new([44], [29]);
    /// A piece (no pawn or king) that is attacked and undefended.
    hanging[1] by One in 0..=200: Term::new([17], [19]);
    /// A knight or bishop that has not moved from its home square.
    undeveloped[1] by One in -100..=50: Term::new([-3], [2]);
    /// A pawn on one of the four squares in the middle.
    centre_pawn[1] by One in -50..=100: Term::new([5], [-3]);
    /// Each of those squares attacked.
    centre_control[1] by One in -50..=50: Term::new([1], [2]);
    /// The right to move.
    tempo[1] by One in 0..=100: Term::new([35], [7]);
    /// Against a bare king: for each step of that king from the middle, and of the kings towards each other.
    mop_up[2] by Count in 0..=100: Term::new([10, 6], [10, 6]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_weight_once_and_in_bounds() {
        let table = Weights::table();
        assert_eq!(table.len(), Weights::count());
        let mut names: Vec<_> = table.iter().map(|row| &row.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), table.len());
        for row in &table {
            assert!((row.min..=row.max).contains(&row.default), "{row:?}");
        }
    }

    #[test]
    fn the_flat_view_writes_the_named_weight() {
        let mut weights = Weights::default();
        let position = |name: &str| {
            Weights::table().iter().position(|row| row.name == name).expect("a weight of that name")
        };
        *weights.flat_mut()[position("bishop_pair.eg")] = 77;
        *weights.flat_mut()[position("knight_square.mg.f3")] = -5;
        assert_eq!(weights.bishop_pair.eg, [77]);
        assert_eq!(weights.knight_square.mg[5 * 8 + 5], -5);
        assert_eq!(weights.flat()[position("bishop_pair.eg")], 77);
    }

    #[test]
    fn a_term_is_read_from_its_two_halves() {
        use serde::de::value::{Error, MapDeserializer};
        let read = |mg: Vec<i32>, eg: Vec<i32>| {
            let halves = MapDeserializer::<_, Error>::new([("mg", mg), ("eg", eg)].into_iter());
            Term::<2>::deserialize(halves)
        };
        assert_eq!(read(vec![1, 2], vec![3, 4]), Ok(Term::new([1, 2], [3, 4])));
        let error = read(vec![1, 2], vec![3]).unwrap_err();
        assert_eq!(error.to_string(), "expected 2 weights, got 1");
    }

    #[test]
    fn plain_weights_have_only_piece_values_and_squares() {
        let plain = Weights::plain();
        assert_eq!(plain.piece_value.mg, [100, 320, 330, 500, 900]);
        assert_eq!(plain.bishop_pair, Term::both([0]));
        assert_eq!(plain.tempo, Term::both([0]));
    }
}
