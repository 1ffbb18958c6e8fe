//! A mix as a deck of cards that is shuffled when it is used up: shares are exact over every deck.

use base::Random;

/// A deck of one card or more.
#[derive(Clone, Debug)]
pub struct Deck<T> {
    cards: Vec<T>,
    next: usize,
}

impl<T: Copy> Deck<T> {
    /// So many cards of each kind. Panics when there are none at all.
    pub fn new(kinds: &[(T, usize)]) -> Self {
        let cards: Vec<T> =
            kinds.iter().flat_map(|&(kind, count)| std::iter::repeat_n(kind, count)).collect();
        assert!(!cards.is_empty(), "a deck without cards");
        Self { next: cards.len(), cards }
    }

    /// The next card.
    pub fn draw(&mut self, random: &mut Random) -> T {
        if self.next == self.cards.len() {
            self.next = 0;
            random.shuffle(&mut self.cards);
        }
        self.next += 1;
        self.cards[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_has_the_exact_mix_in_another_order() {
        let mut deck = Deck::new(&[('n', 45), ('p', 43), ('o', 4), ('d', 4), ('s', 4)]);
        let mut random = Random::new(6);
        let mut last = Vec::new();
        for _ in 0..50 {
            let cards: Vec<char> = (0..100).map(|_| deck.draw(&mut random)).collect();
            let count = |kind: char| cards.iter().filter(|&&card| card == kind).count();
            assert_eq!(['n', 'p', 'o', 'd', 's'].map(count), [45, 43, 4, 4, 4]);
            assert_ne!(cards, last);
            last = cards;
        }
    }
}
