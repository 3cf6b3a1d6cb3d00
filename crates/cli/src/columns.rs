//! The flag for optional columns of exported positions.

use selfmate_methods::dataset::Extras;

#[derive(clap::Args, Clone, Debug)]
pub struct ColumnArgs {
    /// More columns for positions: board (the 8x8x12 board tensor, planes12) and legal (the legal
    /// moves)
    #[arg(long = "with", value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<Column>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Board,
    Legal,
}

impl ColumnArgs {
    pub fn extras(&self) -> Extras {
        let has = |column| self.columns.contains(&column);
        Extras { board: has(Column::Board), legal: has(Column::Legal) }
    }
}
