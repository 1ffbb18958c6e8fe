//! The graph of the load, and which parts of it are asked for.

use super::{Compatibility, FIRST_LINK_TYPE, Options};
use crate::distribution::degree::degree;
use crate::distribution::shuffle::Shuffle;
use crate::distribution::zipf::Zipf;
use base::Random;

/// A popularity of ids.
#[derive(Debug)]
pub(super) struct Popularity {
    /// Shares the popular ids with the degrees.
    correlated: Zipf,
    /// Has popular ids of its own.
    apart: Zipf,
    apart_share: f64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) options: Options,
    ids: u64,
    /// Ranks by degree to ids.
    degrees: Shuffle,
    links: Shuffle,
    nodes: Shuffle,
    link_read: Popularity,
    link_write: Popularity,
    node_read: Zipf,
    node_update: Zipf,
}

impl Graph {
    pub(super) fn new(options: Options) -> Self {
        let ids = options.end_id - options.first_id;
        let mut seeds = Random::new(options.seed);
        let (apart, apart_share) = match options.compatibility {
            // The program takes these two from the settings of reads.
            Compatibility::Quirks => (0.8, 0.995),
            Compatibility::Documented => (0.741, 0.95),
        };
        let popularity = |correlated, apart, apart_share| Popularity {
            correlated: Zipf::new(ids, correlated),
            apart: Zipf::new(ids, apart),
            apart_share,
        };
        Self {
            ids,
            degrees: Shuffle::new(ids, seeds.next_u64()),
            links: Shuffle::new(ids, seeds.next_u64()),
            nodes: Shuffle::new(ids, seeds.next_u64()),
            link_read: popularity(0.8, 0.8, 0.995),
            link_write: popularity(0.741, apart, apart_share),
            node_read: Zipf::new(ids, 0.625),
            node_update: Zipf::new(ids, 0.606),
            options,
        }
    }

    /// Links of an id in the load, of all types.
    pub(super) fn degree(&self, id: u64) -> u64 {
        let rank = self.degrees.inverse(id - self.options.first_id);
        degree(rank, self.ids).min(self.options.degree_max)
    }

    /// Links of an id and a type (from 0) in the load.
    pub(super) fn links(&self, id: u64, link_type: u64) -> u64 {
        let (total, types) = (self.degree(id), self.options.link_types);
        let left = match self.options.compatibility {
            Compatibility::Quirks => total - total / types,
            Compatibility::Documented => total % types,
        };
        total / types + u64::from(link_type < left)
    }

    /// The number of a type of links in the tables.
    pub(super) fn type_number(link_type: u64) -> u64 {
        FIRST_LINK_TYPE + link_type
    }

    fn link_id(&self, popularity: &Popularity, random: &mut Random) -> u64 {
        let place = if random.chance(popularity.apart_share) {
            self.links.permute(popularity.apart.draw(random))
        } else {
            self.degrees.permute(popularity.correlated.draw(random))
        };
        self.options.first_id + place
    }

    /// An id whose links are read.
    pub(super) fn link_read(&self, random: &mut Random) -> u64 {
        self.link_id(&self.link_read, random)
    }

    /// An id whose links are changed.
    pub(super) fn link_write(&self, random: &mut Random) -> u64 {
        self.link_id(&self.link_write, random)
    }

    /// A node to be read.
    pub(super) fn node_read(&self, random: &mut Random) -> u64 {
        self.options.first_id + self.nodes.permute(self.node_read.draw(random))
    }

    /// A node to be updated.
    pub(super) fn node_update(&self, random: &mut Random) -> u64 {
        self.options.first_id + self.nodes.permute(self.node_update.draw(random))
    }

    /// A node to be deleted.
    pub(super) fn node_delete(&self, random: &mut Random) -> u64 {
        self.options.first_id + self.nodes.permute(random.below(self.ids))
    }

    /// The other end of a link of an id and a type that exists with about this probability.
    pub(super) fn other_end(
        &self,
        id: u64,
        link_type: u64,
        exists: f64,
        random: &mut Random,
    ) -> u64 {
        id + random.below(self.other_ends(id, link_type, exists))
    }

    /// Among how many ids the other end is drawn.
    pub(super) fn other_ends(&self, id: u64, link_type: u64, exists: f64) -> u64 {
        ((self.links(id, link_type) as f64 / exists).ceil() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(compatibility: Compatibility) -> Graph {
        Graph::new(Options { end_id: 1_000_001, compatibility, ..Options::default() })
    }

    fn total(graph: &Graph) -> u64 {
        let of_id =
            |id| (0..graph.options.link_types).map(move |t| graph.links(id, t)).sum::<u64>();
        (graph.options.first_id..graph.options.end_id).map(of_id).sum()
    }

    #[test]
    fn totals_are_within_one_percent_of_the_published() {
        let wanted = [(Compatibility::Documented, 4_975_697), (Compatibility::Quirks, 5_249_370)];
        for (compatibility, wanted) in wanted {
            let total = total(&graph(compatibility));
            assert!(total.abs_diff(wanted) * 100 < wanted, "{compatibility:?}: {total}");
        }
    }

    #[test]
    fn documented_types_share_evenly() {
        let graph = graph(Compatibility::Documented);
        for id in 1..2000 {
            let (first, second) = (graph.links(id, 0), graph.links(id, 1));
            assert_eq!(first + second, graph.degree(id));
            assert!(first - second <= 1);
        }
    }

    #[test]
    fn popular_ids_of_reads_are_not_those_of_many_links() {
        let graph = graph(Compatibility::Quirks);
        let mut random = Random::new(4);
        let mean = (0..20_000).map(|_| graph.degree(graph.link_read(&mut random))).sum::<u64>();
        // Drawn by degree the mean would be in the thousands.
        assert!(mean / 20_000 < 500, "{}", mean / 20_000);
        for draw in [Graph::link_read, Graph::link_write, Graph::node_read, Graph::node_delete] {
            assert!((0..10_000).all(|_| (1..1_000_001).contains(&draw(&graph, &mut random))));
        }
    }
}
