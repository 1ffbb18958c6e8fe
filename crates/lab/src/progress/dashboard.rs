//! Figures that move, for people at a terminal.
//!
//! 1. What is drawn is a block of lines at the end of the output; the next drawing goes back over
//!    it. Lines that stay (phases, ends of runs) are printed above it.
//! 2. The terminal is as it was, cursor included, when the dashboard is gone, and after
//!    [`Dashboard::leave`], which may be called from anywhere.

use super::{clock, heading, left, millis, summary};
use crate::driver::Interval;
use crate::experiment::{Place, Watcher};
use crate::results::{Experiment, Run};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(1);
/// Seconds that a line of bars shows.
const BARS: usize = 60;
const BAR: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// See the module.
#[derive(Default)]
pub struct Dashboard {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Lines of the block that is on the screen.
    drawn: usize,
    place: Option<Place>,
    passed: Duration,
    /// By number of the subject.
    servers: BTreeMap<usize, Server>,
}

/// What is known of a server's last run.
struct Server {
    name: String,
    /// Operations a second, the newest last.
    rates: Vec<f64>,
    figures: String,
}

impl Dashboard {
    /// Leaves the terminal as it was.
    pub fn leave(&self) {
        let mut state = self.state.lock();
        state.place = None;
        if state.drawn > 0 {
            state.drawn = 0;
            put(SHOW_CURSOR);
        }
    }

    /// A line that stays, above the block.
    fn say(&self, line: &str) {
        let mut state = self.state.lock();
        let text = format!("{}{line}\n", state.erased());
        put(&text);
        let block = state.block();
        state.draw(&block);
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.leave();
    }
}

fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl State {
    /// Goes back over the block.
    fn erased(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J{SHOW_CURSOR}"),
        }
    }

    fn block(&self) -> Vec<String> {
        let Some(place) = &self.place else { return Vec::new() };
        let share = self.passed.as_secs_f64() / place.length.as_secs_f64().max(1e-9);
        let full = (share.min(1.0) * 30.0) as usize;
        let mut lines = vec![format!(
            "{}  [{}{}] {} left",
            heading(place),
            "=".repeat(full),
            " ".repeat(30 - full),
            clock(left(place, self.passed))
        )];
        let width = self.servers.values().map(|s| s.name.chars().count()).max().unwrap_or(0);
        let highest = self.servers.values().flat_map(|s| &s.rates).fold(0.0, |a: f64, b| a.max(*b));
        for server in self.servers.values() {
            lines.push(format!(
                "{:width$}  {:<BARS$}  {}",
                server.name,
                bars(&server.rates, highest),
                server.figures
            ));
        }
        lines
    }

    fn draw(&mut self, block: &[String]) {
        if block.is_empty() {
            return;
        }
        let mut text = self.erased();
        text.push_str(HIDE_CURSOR);
        for line in block {
            // A line that is wider than the terminal would count as two.
            text.push_str(&format!("\x1b[?7l{line}\x1b[?7h\n"));
        }
        self.drawn = block.len();
        put(&text);
    }
}

/// A bar for each value, against the highest of all servers.
fn bars(values: &[f64], highest: f64) -> String {
    let bar = |value: &f64| {
        let step = (value / highest.max(1e-9) * BAR.len() as f64).ceil() as usize;
        BAR[step.clamp(1, BAR.len()) - 1]
    };
    values.iter().map(bar).collect()
}

impl Watcher for Dashboard {
    fn phase(&self, text: &str) {
        self.say(text);
    }

    fn every(&self) -> Option<Duration> {
        Some(EVERY)
    }

    fn begins(&self, place: &Place) {
        let mut state = self.state.lock();
        state.place = Some(place.clone());
        state.passed = Duration::ZERO;
        let server =
            Server { name: place.name.clone(), rates: Vec::new(), figures: "begins".into() };
        state.servers.insert(place.subject, server);
        let block = state.block();
        state.draw(&block);
    }

    fn interval(&self, place: &Place, interval: &Interval) {
        let mut state = self.state.lock();
        state.passed = interval.end;
        if let Some(server) = state.servers.get_mut(&place.subject) {
            if server.rates.len() == BARS {
                server.rates.remove(0);
            }
            server.rates.push(interval.each_second(interval.completed));
            server.figures = figures(interval);
        }
        let block = state.block();
        state.draw(&block);
    }

    fn ended(&self, experiment: &Experiment, run: &Run) {
        self.say(&summary(experiment, run));
    }
}

fn figures(interval: &Interval) -> String {
    let mut text = format!(
        "{:.0}/s  p95 {:.2} ms  max {:.2} ms",
        interval.each_second(interval.completed),
        millis(interval, 0.95),
        millis(interval, 1.0)
    );
    let wrong = interval.failed + interval.retried;
    if wrong > 0 {
        text.push_str(&format!("  {:.1} errors/s", interval.each_second(wrong)));
    }
    if interval.is_warm_up {
        text.push_str("  warm-up");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn bars_are_relative_to_the_highest() {
        assert_eq!(bars(&[0.0, 1.0, 50.0, 100.0], 100.0), "▁▁▄█");
        assert_eq!(bars(&[0.0], 0.0), "▁");
    }

    #[test]
    fn the_block_has_a_line_for_each_server() {
        let mut state = State { place: Some(sample::place()), ..State::default() };
        state.passed = Duration::from_secs(15);
        for (number, name) in ["A", "longer"].into_iter().enumerate() {
            let interval = sample::interval();
            let rates = vec![interval.each_second(interval.completed)];
            let figures = figures(&interval);
            state.servers.insert(number, Server { name: name.into(), rates, figures });
        }
        let block = state.block();
        assert_eq!(block.len(), 3);
        assert!(block[0].starts_with("B, 64 clients, round 1: run 2 of 4  [======   "));
        assert!(block[0].ends_with("] 3:00 left"), "{}", block[0]);
        assert!(block[1].starts_with("A       █"), "{}", block[1]);
        assert!(
            block[2].ends_with("100/s  p95 5.00 ms  max 80.06 ms  0.5 errors/s"),
            "{}",
            block[2]
        );
    }

    #[test]
    fn what_was_drawn_is_gone_over_and_the_cursor_comes_back() {
        let mut state = State { drawn: 3, ..State::default() };
        assert_eq!(state.erased(), "\x1b[3A\r\x1b[J\x1b[?25h");
        assert_eq!(state.erased(), "");
    }
}
