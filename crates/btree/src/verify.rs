//! Verifying a whole tree, for `gannet check`, CHECK TABLE and tests.

use crate::entry::OVERFLOW;
use crate::error::TreeError;
use crate::layout::MAX_LEVELS;
use crate::node;
use crate::page_read::slice;
use crate::redo::{FORMAT_VERSION, page_type};
use crate::tree::Tree;
use base::PageId;
use pagestore::{StoreError, header};
use std::collections::BTreeSet;

/// Something wrong at a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The page.
    pub pid: PageId,
    /// What does not agree.
    pub detail: String,
}

/// The result of [`Tree::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// What is wrong; empty for a sound tree. At most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Entries, marked as deleted or not.
    pub entries: u64,
    /// Leaves.
    pub leaf_pages: u64,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Pages of overflow values.
    pub overflow_pages: u64,
    /// All pages of the tree: what the allocation map must show as allocated to it.
    pub pages: BTreeSet<PageId>,
}

/// A verification stops after so many findings.
pub const MAX_FINDINGS: usize = 100;

/// What a page must be, by its parent.
struct Expected {
    pid: PageId,
    /// `None` for the root.
    level: Option<usize>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

/// Checks what can be told from a page's own bytes: header, bounds, order. For use as the page
/// store's check of pages it has read; pages of other owners pass.
pub fn check_page(page: &[u8]) -> Result<(), &'static str> {
    match header::page_type(page) {
        page_type::LEAF | page_type::INNER => {
            if header::format_version(page) != FORMAT_VERSION {
                return Err("unknown node format version");
            }
            let leaf = header::page_type(page) == page_type::LEAF;
            if (node::level(page) == 0) != leaf || node::level(page) >= MAX_LEVELS {
                return Err("node level and page type disagree");
            }
            node::check(page)
        }
        _ => Ok(()),
    }
}

impl Tree {
    /// Walks the whole tree and checks structure, order, fences, heads, levels and overflow values.
    /// Damage is reported, not an error; errors are those of log and store as such. Parks.
    ///
    /// Meant for a tree that is not changed meanwhile: a change in progress may show as a finding.
    pub fn verify(&self) -> Result<Verification, TreeError> {
        let mut result = Verification::default();
        let root = Expected { pid: self.root, level: None, lower: None, upper: None };
        let mut open = vec![root];
        while let Some(expected) = open.pop() {
            runtime::yield_if_due();
            if result.findings.len() >= MAX_FINDINGS {
                break;
            }
            if !result.pages.insert(expected.pid) {
                result.add(expected.pid, "page is reachable twice");
                continue;
            }
            let read = self.retry(|_| Ok(self.store.shared_page(expected.pid)?.to_vec()));
            let page = match read {
                Ok(page) => page,
                Err(TreeError::Store(
                    error @ (StoreError::Corrupt { .. } | StoreError::NoSuchPage(_)),
                )) => {
                    result.add(expected.pid, &error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Err(detail) = self.check_node(&page, &expected) {
                result.add(expected.pid, detail);
                continue;
            }
            if node::level(&page[..]) == 0 {
                result.leaf_pages += 1;
                result.entries += node::count(&page[..]) as u64;
                self.verify_values(&page, &mut result)?;
            } else {
                result.inner_pages += 1;
                open_children(&page, &mut open, &mut result);
            }
        }
        Ok(result)
    }

    fn check_node(&self, page: &[u8], expected: &Expected) -> Result<(), &'static str> {
        if header::raw_pid(page) != expected.pid.get() || header::tree(page) != self.id {
            return Err("page of another tree or number");
        }
        let kind = header::page_type(page);
        if kind != page_type::LEAF && kind != page_type::INNER || header::class(page) != self.class
        {
            return Err("not a node of this tree's page size");
        }
        check_page(page)?;
        node::check_order(page)?;
        if expected.level.is_some_and(|level| level != node::level(page)) {
            return Err("level differs from the parent's");
        }
        if node::lower_fence(page) != expected.lower.as_deref()
            || node::upper_fence(page) != expected.upper.as_deref()
        {
            return Err("fences differ from the parent's separators");
        }
        Ok(())
    }

    fn verify_values(&self, page: &[u8], result: &mut Verification) -> Result<(), TreeError> {
        let pid = PageId::checked(header::raw_pid(page)).unwrap_or(self.root);
        let mut value = Vec::new();
        for index in 0..node::count(page) {
            let header = node::leaf_header(page, node::slot(page, index));
            if header.flags & OVERFLOW == 0 {
                continue;
            }
            let mut pages = Vec::new();
            let stored = slice(page, header.payload_offset, header.payload_len);
            let Ok(reference) = self.reference(stored) else {
                result.add(pid, "malformed overflow reference");
                continue;
            };
            match self.read_value(&reference, &mut value, Some(&mut pages)) {
                Ok(true) => {}
                Ok(false) => result.add(pid, "overflow pages do not hold the value"),
                Err(TreeError::Store(error @ StoreError::Corrupt { .. })) => {
                    result.add(reference.root, &error.to_string());
                }
                Err(error) => return Err(error),
            }
            result.overflow_pages += pages.len() as u64;
            for pid in pages {
                if !result.pages.insert(pid) {
                    result.add(pid, "overflow page is reachable twice");
                }
            }
        }
        Ok(())
    }
}

impl Verification {
    fn add(&mut self, pid: PageId, detail: &str) {
        self.findings.push(Finding { pid, detail: detail.to_owned() });
    }
}

fn open_children(page: &[u8], open: &mut Vec<Expected>, result: &mut Verification) {
    let count = node::count(page);
    let level = node::level(page).checked_sub(1);
    for index in 0..=count {
        let Some(pid) = PageId::checked(node::child(page, index)) else {
            let parent = PageId::checked(header::raw_pid(page)).unwrap_or(PageId::ZERO);
            result.add(parent, "child number above 48 bits");
            continue;
        };
        let lower = match index {
            0 => node::lower_fence(page).map(<[u8]>::to_vec),
            _ => Some(node::key(page, index - 1)),
        };
        let upper = match index == count {
            true => node::upper_fence(page).map(<[u8]>::to_vec),
            false => Some(node::key(page, index)),
        };
        open.push(Expected { pid, level, lower, upper });
    }
}
