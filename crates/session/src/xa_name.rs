//! Names of XA branches: as the engine keeps them, and as statements write them.

use std::fmt::Write;
use syntax::ast::Xid;

/// `format u32 | length of the global part u8 | of the branch part u8 | both`: the name that the
/// engine keeps.
pub(crate) fn encode(xid: &Xid) -> Vec<u8> {
    let mut name = xid.format.to_le_bytes().to_vec();
    name.extend([xid.global.len() as u8, xid.branch.len() as u8]);
    name.extend_from_slice(&xid.global);
    name.extend_from_slice(&xid.branch);
    name
}

/// The name that [`encode`] made so; `None` for other bytes.
pub(crate) fn decode(name: &[u8]) -> Option<Xid> {
    let (format, rest) = name.split_first_chunk::<4>()?;
    let ([global, branch], rest) = rest.split_first_chunk::<2>()?;
    let (global, rest) = rest.split_at_checked(usize::from(*global))?;
    let format = u32::from_le_bytes(*format);
    (rest.len() == usize::from(*branch)).then(|| Xid {
        format,
        global: global.to_vec(),
        branch: rest.to_vec(),
    })
}

/// The name as XA statements take it: quoted, or in hexadecimal if a byte needs it.
pub(crate) fn sql_text(xid: &Xid) -> String {
    let mut bytes = xid.global.iter().chain(&xid.branch);
    let is_plain = bytes.all(|byte| matches!(byte, b' '..=b'~') && !b"'\"\\".contains(byte));
    let push = |text: &mut String, part: &[u8]| {
        if is_plain {
            let _ = write!(text, "'{}'", String::from_utf8_lossy(part));
            return;
        }
        text.push_str("X'");
        for byte in part {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\'');
    };
    let mut text = String::new();
    push(&mut text, &xid.global);
    if !xid.branch.is_empty() || xid.format != 1 {
        text.push(',');
        push(&mut text, &xid.branch);
    }
    if xid.format != 1 {
        let _ = write!(text, ",{}", xid.format);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_the_engine() {
        let xid = Xid { format: 7, global: b"left".to_vec(), branch: vec![0, 255] };
        let name = encode(&xid);
        assert_eq!(decode(&name), Some(xid));
        for end in 0..name.len() {
            assert_eq!(decode(&name[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn names_are_shown_as_they_are_written() {
        let name = |format, global: &[u8], branch: &[u8]| {
            sql_text(&Xid { format, global: global.to_vec(), branch: branch.to_vec() })
        };
        assert_eq!(name(1, b"a b", b""), "'a b'");
        assert_eq!(name(1, b"a", b"b"), "'a','b'");
        assert_eq!(name(2, b"a", b""), "'a','',2");
        assert_eq!(name(1, b"a'", b"\x01"), "X'6127',X'01'");
    }
}
