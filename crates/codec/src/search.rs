//! How Zstandard looks for bytes that came before.
//!
//! The library's choice for a level takes matches of four or five bytes. Rows of digits by chance
//! are full of these and gain nothing by them: what says where a match is takes as much as its
//! digits do, and a page takes longer both ways. So a tree's pages are tried with several
//! (`pagestore/src/training.rs`). Any decoder reads what any of them wrote.

use crate::library::{self, Settings};

/// What SQL's level is unless said otherwise; who wants small pages more than fast ones is above.
const USUAL_LEVEL: i32 = 6;
/// From this level on the library looks in two tables.
const TWO_TABLES_LEVEL: i32 = 5;
/// What may be lost of the bytes for a cheaper search ...
const TOLERANCE: f64 = 0.02;
/// ... and for one that leaves out places: with a dictionary pages of digits are written in two
/// thirds of the time and read in six sevenths.
const TOLERANCE_SKIPPING: f64 = 0.03;
/// How far [`Search::Skipping`] goes on: with a dictionary it looks at every second place, without
/// at two of three.
const SKIPPING_STEP: u32 = 2;
/// With a dictionary, two to this many places for [`Search::Skipping`]: fewer matches are found,
/// and what is left between them looks more like what the dictionary's own statistics say.
const SKIPPING_TABLE_LOG: u32 = 11;

/// How Zstandard looks for bytes that came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// As the library does at the level.
    #[default]
    ByLevel,
    /// In one table.
    OneTable {
        /// Shortest match, 4 to 7 bytes.
        match_bytes_min: u8,
    },
    /// In two tables, one of them for long matches.
    TwoTables {
        /// Shortest match, 4 to 7 bytes.
        match_bytes_min: u8,
    },
    /// In one small table, without looking everywhere.
    Skipping {
        /// Shortest match, 4 to 7 bytes.
        match_bytes_min: u8,
    },
}

/// All but the library's own, those first that take the least time.
const CHEAPEST_FIRST: [Search; 8] = [
    Search::Skipping { match_bytes_min: 6 },
    Search::OneTable { match_bytes_min: 7 },
    Search::OneTable { match_bytes_min: 6 },
    Search::OneTable { match_bytes_min: 5 },
    Search::OneTable { match_bytes_min: 4 },
    Search::TwoTables { match_bytes_min: 6 },
    Search::TwoTables { match_bytes_min: 5 },
    Search::TwoTables { match_bytes_min: 4 },
];

impl Search {
    /// The number that stands for it on disk: the tables and the bytes, a digit each.
    pub fn number(self) -> u8 {
        match self {
            Search::ByLevel => 0,
            Search::OneTable { match_bytes_min } => 10 + match_bytes_min,
            Search::TwoTables { match_bytes_min } => 20 + match_bytes_min,
            Search::Skipping { match_bytes_min } => 30 + match_bytes_min,
        }
    }

    /// What a number stands for; [`Search::ByLevel`] for one that is not known, since any search
    /// makes pages that can be read.
    pub fn from_number(number: u8) -> Search {
        let known = CHEAPEST_FIRST.into_iter().find(|search| search.number() == number);
        known.unwrap_or_default()
    }

    /// The search for pages of which nothing is known: at the usual level one that takes two thirds
    /// of the time of the library's own and made at most 5.4 % more of the pages of nine trees.
    pub(crate) fn untried(level: i32) -> Search {
        match level {
            USUAL_LEVEL => Search::OneTable { match_bytes_min: 5 },
            _ => Search::ByLevel,
        }
    }

    /// Whether who asks for this level wants small pages more than fast ones.
    pub fn is_small_before_fast(level: i32) -> bool {
        level > USUAL_LEVEL
    }

    /// The search to be used at a level, and what it makes of some pages: `bytes` says that of any.
    /// At usual levels a cheap one may make a little more than the best.
    pub fn choose(level: i32, mut bytes: impl FnMut(Search) -> usize) -> (Search, usize) {
        let is_tried = |search: &Search| match search {
            Search::TwoTables { .. } => level >= TWO_TABLES_LEVEL,
            _ => true,
        };
        let tried = CHEAPEST_FIRST.into_iter().filter(is_tried).chain([Search::ByLevel]);
        let tried: Vec<_> = tried.map(|search| (search, bytes(search))).collect();
        let least = tried.iter().map(|&(_, bytes)| bytes).min().unwrap_or(0);
        let is_near = |&(search, bytes): &(Search, usize)| {
            let tolerance = match search {
                _ if Search::is_small_before_fast(level) => 0.0,
                Search::Skipping { .. } => TOLERANCE_SKIPPING,
                _ => TOLERANCE,
            };
            bytes <= (least as f64 * (1.0 + tolerance)) as usize
        };
        tried.into_iter().find(is_near).unwrap_or((Search::ByLevel, least))
    }

    /// The library's settings at a level of the library, for pages and with a dictionary of so many
    /// bytes (0: none).
    pub(crate) fn settings(self, library_level: i32, dictionary_bytes: usize) -> Settings {
        let by_level = library::settings(library_level, dictionary_bytes);
        match self {
            Search::ByLevel => by_level,
            Search::OneTable { match_bytes_min } => by_level.in_one_table(match_bytes_min),
            Search::TwoTables { match_bytes_min } => by_level.in_two_tables(match_bytes_min),
            Search::Skipping { match_bytes_min } => {
                by_level.in_one_table(match_bytes_min).skipping(SKIPPING_STEP, SKIPPING_TABLE_LOG)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_searches() {
        for search in CHEAPEST_FIRST.into_iter().chain([Search::ByLevel]) {
            assert_eq!(Search::from_number(search.number()), search);
        }
        assert_eq!(Search::from_number(255), Search::ByLevel);
    }

    #[test]
    fn a_cheap_search_may_make_a_little_more_at_usual_levels() {
        let short = Search::OneTable { match_bytes_min: 4 };
        let double = Search::TwoTables { match_bytes_min: 5 };
        let bytes = |search: Search| match search {
            Search::ByLevel => 1000,
            found if found == double => 1001,
            found if found == short => 1019,
            _ => 1100,
        };
        assert_eq!(Search::choose(6, bytes), (short, 1019));
        assert_eq!(Search::choose(9, bytes), (Search::ByLevel, 1000), "small before fast");
        let bytes = |search: Search| if search == short { 1021 } else { bytes(search) };
        assert_eq!(Search::choose(6, bytes), (double, 1001));
        assert_eq!(Search::choose(3, bytes), (Search::ByLevel, 1000), "not tried at low levels");
        let skipping = Search::Skipping { match_bytes_min: 6 };
        let bytes = |found: Search| if found == skipping { 1029 } else { bytes(found) };
        assert_eq!(Search::choose(6, bytes), (skipping, 1029), "it saves most time");
        assert_eq!(Search::choose(9, bytes), (Search::ByLevel, 1000), "small before fast");
    }
}
