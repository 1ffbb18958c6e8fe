//! Sizes and estimates for the optimizer, from a few descents.

use crate::descent::Stop;
use crate::entry::Batch;
use crate::error::TreeError;
use crate::node::{self, Route};
use crate::tree::Tree;
use std::ops::Bound;

/// Size of a tree. Counts are estimates, except in a tree of one or two levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Levels, 1 for a tree that is one leaf.
    pub height: u64,
    /// Leaves.
    pub leaf_pages: u64,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Entries, marked as deleted or not.
    pub entries: u64,
}

/// Descents for one estimate.
const SAMPLE_DESCENTS: usize = 16;

/// One node on the way down: the position taken and the number of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    index: usize,
    count: usize,
}

impl Tree {
    /// Estimates the size from a handful of descents. Parks if pages must be read.
    pub fn statistics(&self) -> Result<TreeStatistics, TreeError> {
        let mut paths = Vec::new();
        for number in 0..SAMPLE_DESCENTS {
            paths.push(self.retry(|_| self.sample_path(number))?);
            if number == 0 && paths[0].len() == 1 {
                // One leaf is all there is.
                break;
            }
        }
        // The root may have grown between two descents: the last height counts.
        let height = paths.last().map_or(0, Vec::len);
        paths.retain(|path| path.len() == height);
        let average = |depth: usize| {
            let sum: usize = paths.iter().map(|path| path[depth].count).sum();
            sum as f64 / paths.len() as f64
        };
        let mut nodes = 1.0;
        let mut inner_pages = 0.0;
        for depth in 0..height - 1 {
            inner_pages += nodes;
            nodes *= average(depth);
        }
        Ok(TreeStatistics {
            height: height as u64,
            leaf_pages: nodes.round() as u64,
            inner_pages: inner_pages.round() as u64,
            entries: (nodes * average(height - 1)).round() as u64,
        })
    }

    /// Fills `batch` with the entries of a random leaf, for histograms and distinct counts.
    /// Overflow values are left out of the batch.
    pub fn sample_leaf(&self, batch: &mut Batch) -> Result<(), TreeError> {
        self.copy_leaf(batch, || random_below)
    }

    /// The same with the leaf that has so large a share of the leaves (0 to 1) before it. Shares
    /// that are spread evenly over as many leaves as a tree of two levels has meet each of them.
    pub fn leaf_at(&self, share: f64, batch: &mut Batch) -> Result<(), TreeError> {
        self.copy_leaf(batch, || {
            let mut rest = share.clamp(0.0, 1.0 - f64::EPSILON);
            move |children| {
                let place = rest * children as f64;
                rest = place.fract();
                (place as usize).min(children - 1)
            }
        })
    }

    /// Copies the entries of the leaf to which `way` leads, that is asked for a child of so many
    /// at every level.
    fn copy_leaf<W: FnMut(usize) -> usize>(
        &self,
        batch: &mut Batch,
        way: impl Fn() -> W,
    ) -> Result<(), TreeError> {
        self.retry(|_| {
            batch.clear();
            let mut way = way();
            let leaf = self.descend_by(0, |page| way(node::count(page) + 1))?.page;
            let page = self.store.shared_page(leaf.pid())?;
            leaf.validate()?;
            for index in 0..node::count(&page[..]) {
                let slot = node::slot(&page[..], index);
                let header = node::leaf_header(&page[..], slot);
                if header.flags & crate::entry::OVERFLOW == 0 {
                    let payload =
                        crate::page_read::slice(&page, header.payload_offset, header.payload_len);
                    let key = [node::prefix(&page), node::suffix(&page, slot)];
                    batch.push(key, header.flags, header.word, payload);
                }
            }
            Ok(())
        })
    }

    /// Estimates how many entries lie between the bounds, from one descent to each. Exact if both
    /// fall into one leaf.
    pub fn estimate_range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<u64, TreeError> {
        let from = self.retry(|_| match lower {
            Bound::Included(key) => self.path_to(key, false),
            Bound::Excluded(key) => self.path_to(key, true),
            Bound::Unbounded => self.path_by(|_| 0, |_| 0),
        })?;
        let to = self.retry(|_| match upper {
            Bound::Included(key) => self.path_to(key, true),
            Bound::Excluded(key) => self.path_to(key, false),
            Bound::Unbounded => self.path_by(|count| count, |count| count),
        })?;
        if from.len() != to.len() {
            // The tree changed its height in between; the next estimate will do better.
            return Ok(self.statistics()?.entries / 2);
        }
        Ok(entries_between(&from, &to))
    }

    /// Sample number `number` of an estimate: the samples spread evenly over the root's children
    /// and go on at random.
    fn sample_path(&self, number: usize) -> Result<Vec<Step>, Stop> {
        let mut depth = 0;
        self.path_by(
            |count| {
                depth += 1;
                match depth {
                    1 => (2 * number + 1) * (count + 1) / (2 * SAMPLE_DESCENTS),
                    _ => random_below(count + 1),
                }
            },
            |count| count,
        )
    }

    fn path_to(&self, key: &[u8], behind: bool) -> Result<Vec<Step>, Stop> {
        let mut path = Vec::new();
        let leaf = self.descend_by(0, |page| {
            let index = node::child_index(page, key, Route::Containing);
            path.push(Step { index, count: node::count(page) + 1 });
            index
        })?;
        let (index, exact) = node::lower_bound(&leaf.page, key);
        path.push(Step {
            index: index + usize::from(exact && behind),
            count: node::count(&leaf.page),
        });
        leaf.page.validate()?;
        Ok(path)
    }

    fn path_by(
        &self,
        mut inner: impl FnMut(usize) -> usize,
        leaf: impl Fn(usize) -> usize,
    ) -> Result<Vec<Step>, Stop> {
        let mut path = Vec::new();
        let found = self.descend_by(0, |page| {
            let count = node::count(page);
            let index = inner(count);
            path.push(Step { index, count: count + 1 });
            index
        })?;
        let count = node::count(&found.page);
        path.push(Step { index: leaf(count), count });
        found.page.validate()?;
        Ok(path)
    }
}

fn random_below(limit: usize) -> usize {
    (runtime::random_u64() % limit.max(1) as u64) as usize
}

/// Entries between two positions: whole subtrees between the paths count with the average size
/// seen along both.
fn entries_between(from: &[Step], to: &[Step]) -> u64 {
    let Some(fork) = (0..from.len()).find(|depth| from[*depth].index != to[*depth].index) else {
        return 0;
    };
    let leaf = from.len() - 1;
    if fork == leaf {
        return to[leaf].index.saturating_sub(from[leaf].index) as u64;
    }
    if from[fork].index > to[fork].index {
        return 0;
    }
    let average = |depth: usize| (from[depth].count + to[depth].count) as f64 / 2.0;
    // Entries below one child of a node at `depth`.
    let below = |depth: usize| (depth + 1..=leaf).map(average).product::<f64>();
    let mut sum = (to[fork].index - from[fork].index - 1) as f64 * below(fork);
    for depth in fork + 1..leaf {
        let right_of_from = from[depth].count - from[depth].index - 1;
        sum += (right_of_from + to[depth].index) as f64 * below(depth);
    }
    sum += (from[leaf].count.saturating_sub(from[leaf].index) + to[leaf].index) as f64;
    sum.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &[(usize, usize)]) -> Vec<Step> {
        steps.iter().map(|(index, count)| Step { index: *index, count: *count }).collect()
    }

    #[test]
    fn estimates_follow_the_paths() {
        let same_leaf = [path(&[(3, 9), (5, 40)]), path(&[(3, 9), (17, 40)])];
        assert_eq!(entries_between(&same_leaf[0], &same_leaf[1]), 12);
        let neighbours = [path(&[(3, 9), (35, 40)]), path(&[(4, 9), (2, 40)])];
        assert_eq!(entries_between(&neighbours[0], &neighbours[1]), 7);
        let far = [path(&[(0, 10), (0, 50)]), path(&[(9, 10), (50, 50)])];
        assert_eq!(entries_between(&far[0], &far[1]), 500);
        assert_eq!(entries_between(&far[1], &far[0]), 0);
    }
}
