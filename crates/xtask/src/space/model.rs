//! A model of collection: how many bytes are written for each byte that was changed, by how the
//! store is used, by how full it is, and by how copies are grouped.
//!
//! Pages of one size, segments of [`SEGMENT_PAGES`] of them; each update writes its page to the
//! open segment of users; when free segments run short, a victim is emptied into the open segment
//! of moved copies. Nothing of it is the store's code: it says what a policy is worth before it
//! is built.

use crate::random::Random;

const SEGMENT_PAGES: usize = 512;
const PAGES: usize = 120_000;
/// Writes of each run, in pages of the store: the first half warms up.
const TURNS: usize = 8;
/// Free segments below which is collected.
const FREE_MIN: usize = 4;

/// Which pages are written.
#[derive(Clone, Copy)]
enum Load {
    Uniform,
    /// So many percent of the writes go to the other percent of the pages.
    Skewed(u64),
    /// Rank by a power law.
    Zipf,
}

/// Where copies go.
#[derive(Clone, Copy, PartialEq)]
enum Grouping {
    /// Moved copies among those of users.
    One,
    /// Moved copies in a stream of their own.
    Moved,
    /// A third stream for copies that were moved more than once.
    Generations,
    /// Copies of users, too, go by the time since the page was written last.
    Lifetimes,
}

/// How a victim is chosen.
#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Greedy,
    /// (1 - u) age / (1 + u), as in log-structured file systems.
    CostBenefit,
}

#[derive(Clone, Default)]
struct Segment {
    pages: Vec<u32>,
    live: usize,
    closed_at: u64,
    is_closed: bool,
}

struct Store {
    segments: Vec<Segment>,
    free: Vec<usize>,
    place: Vec<usize>,
    moves: Vec<u8>,
    written_at: Vec<u64>,
    open: [Option<usize>; 4],
    now: u64,
    moved: u64,
    grouping: Grouping,
    victim: Victim,
}

impl Store {
    fn new(utilisation: f64, grouping: Grouping, victim: Victim) -> Self {
        let count = (PAGES as f64 / utilisation / SEGMENT_PAGES as f64) as usize + FREE_MIN + 4;
        let mut store = Self {
            segments: vec![Segment::default(); count],
            free: (0..count).rev().collect(),
            place: vec![usize::MAX; PAGES],
            moves: vec![0; PAGES],
            written_at: vec![0; PAGES],
            open: [None; 4],
            now: 0,
            moved: 0,
            grouping,
            victim,
        };
        (0..PAGES).for_each(|page| store.put(page, 0));
        store
    }

    fn put(&mut self, page: usize, stream: usize) {
        if self.place[page] != usize::MAX {
            self.segments[self.place[page]].live -= 1;
        }
        let full = |segment: &Segment| segment.pages.len() == SEGMENT_PAGES;
        if let Some(open) = self.open[stream]
            && full(&self.segments[open])
        {
            self.segments[open].is_closed = true;
            self.segments[open].closed_at = self.now;
            self.open[stream] = None;
        }
        let free = &mut self.free;
        let open = *self.open[stream].get_or_insert_with(|| free.pop().expect("a segment"));
        self.segments[open].pages.push(page as u32);
        self.segments[open].live += 1;
        self.place[page] = open;
    }

    fn update(&mut self, page: usize) {
        self.now += 1;
        let interval = self.now - self.written_at[page];
        self.written_at[page] = self.now;
        self.moves[page] = 0;
        let is_hot = interval < PAGES as u64 / 2;
        let stream = usize::from(self.grouping == Grouping::Lifetimes && !is_hot) * 3;
        self.put(page, stream);
        while self.free.len() < FREE_MIN {
            self.collect();
        }
    }

    fn collect(&mut self) {
        let worth = |segment: &Segment| {
            let share = segment.live as f64 / SEGMENT_PAGES as f64;
            let age = (self.now - segment.closed_at) as f64;
            match self.victim {
                Victim::Greedy => 1.0 - share,
                Victim::CostBenefit => (1.0 - share) * age / (1.0 + share),
            }
        };
        let closed = (0..self.segments.len()).filter(|&at| self.segments[at].is_closed);
        let victim = closed
            .max_by(|&a, &b| worth(&self.segments[a]).total_cmp(&worth(&self.segments[b])))
            .expect("some segment is closed");
        let pages = std::mem::take(&mut self.segments[victim].pages);
        for page in pages.into_iter().map(|page| page as usize) {
            if self.place[page] != victim {
                continue;
            }
            self.moves[page] = self.moves[page].saturating_add(1);
            let stream = match self.grouping {
                Grouping::One => 0,
                Grouping::Moved => 1,
                _ if self.moves[page] > 1 => 2,
                _ => 1,
            };
            self.put(page, stream);
            self.moved += 1;
        }
        self.segments[victim] = Segment::default();
        self.free.insert(0, victim);
    }
}

fn page_of(load: Load, random: &mut Random) -> usize {
    let pages = PAGES as u64;
    let page = match load {
        Load::Uniform => random.below(pages),
        Load::Skewed(percent) => {
            let hot = pages * (100 - percent) / 100;
            let is_hot = random.below(100) < percent;
            if is_hot { random.below(hot) } else { hot + random.below(pages - hot) }
        }
        Load::Zipf => {
            let share = (random.below(1 << 53) as f64 + 1.0) / (1u64 << 53) as f64;
            // The inverse of a power law with exponent 0.99, near enough.
            ((pages as f64).powf(share) as u64 - 1).min(pages - 1)
        }
    };
    // Hot pages are spread over the store.
    (page.wrapping_mul(7_919) % pages) as usize
}

/// Bytes written for each byte changed.
fn amplification(load: Load, utilisation: f64, grouping: Grouping, victim: Victim) -> f64 {
    let mut store = Store::new(utilisation, grouping, victim);
    let mut random = Random::new(1);
    let writes = PAGES * TURNS;
    for number in 0..writes {
        if number == writes / 2 {
            store.moved = 0;
        }
        store.update(page_of(load, &mut random));
    }
    1.0 + store.moved as f64 / (writes / 2) as f64
}

/// Prints the table.
pub fn run() {
    let groupings = [
        ("one stream, greedy", Grouping::One, Victim::Greedy),
        ("moved apart, greedy", Grouping::Moved, Victim::Greedy),
        ("by generation, greedy", Grouping::Generations, Victim::Greedy),
        ("by lifetime, greedy", Grouping::Lifetimes, Victim::Greedy),
        ("moved apart, cost-benefit", Grouping::Moved, Victim::CostBenefit),
        ("by generation, cost-benefit", Grouping::Generations, Victim::CostBenefit),
        ("by lifetime, cost-benefit", Grouping::Lifetimes, Victim::CostBenefit),
    ];
    let loads = [
        ("uniform", Load::Uniform),
        ("80/20", Load::Skewed(80)),
        ("95/5", Load::Skewed(95)),
        ("zipf 0.99", Load::Zipf),
    ];
    println!("bytes written for each byte changed, at a live share of 0.70 / 0.80");
    print!("{:28}", "");
    loads.iter().for_each(|(name, _)| print!("{name:>16}"));
    println!();
    for (name, grouping, victim) in groupings {
        print!("{name:28}");
        for (_, load) in loads {
            let at = |share| amplification(load, share, grouping, victim);
            print!("{:>16}", format!("{:.2} / {:.2}", at(0.70), at(0.80)));
        }
        println!();
    }
}
