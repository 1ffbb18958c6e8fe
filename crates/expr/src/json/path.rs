//! Paths into JSON texts: `$.key[0]."other key"[last]**.x`.

use super::{Fault, Kind, Node, same_key};

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// `.key`; none is `.*`.
    Key(Option<Vec<u8>>),
    /// `[n]`; below zero from the end.
    Index(i64),
    /// `[n to m]`.
    Range(i64, i64),
    /// `[*]`.
    Any,
    /// `**`: the next step at any depth.
    Deep,
}

/// A parsed path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Path {
    pub steps: Vec<Step>,
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn fault(&self) -> Fault {
        if self.at < self.text.len() { Fault::Syntax(self.at + 1) } else { Fault::End }
    }

    fn word(&mut self, word: &[u8]) -> bool {
        let found = self.text[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn key(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        self.blanks();
        match self.peek() {
            Some(b'*') => {
                self.at += 1;
                Ok(None)
            }
            Some(b'"') => {
                self.at += 1;
                let start = self.at;
                while let Some(byte) = self.peek() {
                    if byte == b'"' {
                        self.at += 1;
                        return Ok(Some(self.text[start..self.at - 1].to_vec()));
                    }
                    self.at += if byte == b'\\' { 2 } else { 1 };
                }
                Err(Fault::End)
            }
            _ => {
                let start = self.at;
                let ends = |byte: u8| matches!(byte, b'.' | b'[' | b'*' | b' ' | b'"' | b']');
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
                if self.at == start {
                    Err(self.fault())
                } else {
                    Ok(Some(self.text[start..self.at].to_vec()))
                }
            }
        }
    }

    fn number(&mut self) -> Result<i64, Fault> {
        self.blanks();
        let from_end = self.word(b"last");
        self.blanks();
        let negative = self.word(b"-");
        self.blanks();
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        let number = match digits {
            "" if from_end && !negative => 0,
            "" => return Err(self.fault()),
            digits => digits.parse::<i64>().unwrap_or(i64::from(i32::MAX)),
        };
        self.blanks();
        Ok(match (from_end, negative) {
            (true, _) => -1 - number,
            (false, true) => -number,
            _ => number,
        })
    }

    fn index(&mut self) -> Result<Step, Fault> {
        self.blanks();
        let step = if self.word(b"*") {
            self.blanks();
            Step::Any
        } else {
            let first = self.number()?;
            if self.word(b"to") { Step::Range(first, self.number()?) } else { Step::Index(first) }
        };
        if self.word(b"]") { Ok(step) } else { Err(self.fault()) }
    }
}

impl Path {
    /// Parses a path.
    pub fn parse(text: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader { text, at: 0 };
        let mut steps = Vec::new();
        reader.blanks();
        if !reader.word(b"$") {
            return Err(reader.fault());
        }
        loop {
            reader.blanks();
            if reader.word(b"**") {
                steps.push(Step::Deep);
            } else if reader.word(b".") {
                steps.push(Step::Key(reader.key()?));
            } else if reader.word(b"[") {
                steps.push(reader.index()?);
            } else if reader.at < text.len() || steps.last() == Some(&Step::Deep) {
                return Err(reader.fault());
            } else {
                return Ok(Self { steps });
            }
        }
    }

    /// The path without its `**`, as functions have it that look for one value only.
    pub fn without_deep(mut self) -> Self {
        self.steps.retain(|step| *step != Step::Deep);
        self
    }

    /// Whether it can name several values.
    pub fn is_wild(&self) -> bool {
        let wild = |step: &Step| !matches!(step, Step::Key(Some(_)) | Step::Index(_));
        self.steps.iter().any(wild)
    }

    /// Whether it names items by their places from the end of a list.
    pub fn counts_back(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Index(..0)))
    }

    /// The values that it names, in the order of the text.
    pub fn select<'n, 'a>(&self, root: &'n Node<'a>) -> Vec<&'n Node<'a>> {
        let mut found = Vec::new();
        walk(root, &self.steps, &mut found);
        if self.steps.contains(&Step::Deep) {
            let place =
                |node: &&Node<'_>| (node.raw.as_ptr() as usize, usize::MAX - node.raw.len());
            found.sort_by_key(place);
            found.dedup_by_key(|node| place(node));
        }
        found
    }

    /// The first of them.
    pub fn first<'n, 'a>(&self, root: &'n Node<'a>) -> Option<&'n Node<'a>> {
        self.select(root).into_iter().next()
    }
}

/// Place of an index in a list of so many.
pub(crate) fn place(index: i64, count: usize) -> Option<usize> {
    usize::try_from(if index < 0 { count as i64 + index } else { index }).ok()
}

fn walk<'n, 'a>(node: &'n Node<'a>, steps: &[Step], found: &mut Vec<&'n Node<'a>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(node);
        return;
    };
    match (step, &node.kind) {
        (Step::Deep, kind) => {
            walk(node, rest, found);
            match kind {
                Kind::Array(list) => list.iter().for_each(|it| walk(it, steps, found)),
                Kind::Object(list) => list.iter().for_each(|(_, it)| walk(it, steps, found)),
                _ => {}
            }
        }
        (Step::Key(Some(key)), Kind::Object(list)) => {
            if let Some((_, member)) = list.iter().find(|(own, _)| same_key(own, key)) {
                walk(member, rest, found);
            }
        }
        (Step::Key(None), Kind::Object(list)) => {
            list.iter().for_each(|(_, member)| walk(member, rest, found));
        }
        (Step::Index(index), Kind::Array(list)) => {
            if let Some(member) = place(*index, list.len()).and_then(|at| list.get(at)) {
                walk(member, rest, found);
            }
        }
        (Step::Range(first, last), Kind::Array(list)) => {
            let first = place(*first, list.len()).unwrap_or(0);
            let last = place(*last, list.len()).map_or(0, |last| last + 1).min(list.len());
            for member in list.get(first..last).unwrap_or_default() {
                walk(member, rest, found);
            }
        }
        (Step::Any, Kind::Array(list)) => list.iter().for_each(|it| walk(it, rest, found)),
        // What is no array counts as an array of itself, but not from its end.
        (Step::Index(0), Kind::Object(_)) => walk(node, rest, found),
        (Step::Index(0), _) if node.is_scalar() => walk(node, rest, found),
        _ => {}
    }
}
