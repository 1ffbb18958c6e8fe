//! Where an answer ends. Only packet headers and first bytes are looked at; the capabilities that
//! the client logs in with make results end with EOF packets.

/// How an answer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With OK, or with the end of its rows.
    Well,
    /// With this error number.
    Error(u16),
}

/// What is known of the answer that is arriving.
#[derive(Default)]
pub struct Answers {
    /// A result's columns were announced.
    is_result: bool,
    /// EOF packets of this result.
    ends: u8,
}

const HEADER_BYTES: usize = 4;
/// An EOF packet is shorter.
const EOF_BYTES_MAX: usize = 9;

impl Answers {
    /// Takes whole packets from the front of `bytes` until an answer has ended; how many bytes
    /// were taken, and how it ended if it has.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Ended>) {
        let mut taken = 0;
        while let Some([a, b, c, _]) = bytes[taken..].first_chunk::<HEADER_BYTES>() {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            let body = taken + HEADER_BYTES;
            let Some(payload) = bytes.get(body..body + length) else { break };
            taken = body + length;
            if let Some(ended) = self.packet(payload) {
                *self = Self::default();
                return (taken, Some(ended));
            }
        }
        (taken, None)
    }

    fn packet(&mut self, payload: &[u8]) -> Option<Ended> {
        match payload {
            [0xff, low, high, ..] => Some(Ended::Error(u16::from_le_bytes([*low, *high]))),
            [0xfe, ..] if self.is_result && payload.len() < EOF_BYTES_MAX => {
                self.ends += 1;
                (self.ends == 2).then_some(Ended::Well)
            }
            [0, ..] if !self.is_result => Some(Ended::Well),
            _ => {
                self.is_result = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![payload.len() as u8, 0, 0, 1];
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn finds_the_end_wherever_the_bytes_are_cut() {
        let eof = packet(&[0xfe, 0, 0, 2, 0]);
        // A row of the binary protocol begins with 0, which is no OK here.
        let parts = [packet(&[1]), packet(b"def"), eof.clone(), packet(&[0, 0, 7]), eof];
        let answer = [parts.concat(), packet(&[0xff, 0xbd, 4, b'#']), packet(&[0, 0, 0])].concat();
        for cut in 1..answer.len() {
            let mut answers = Answers::default();
            let (mut ends, mut held) = (Vec::new(), Vec::new());
            for part in [&answer[..cut], &answer[cut..]] {
                held.extend_from_slice(part);
                while let (taken, Some(ended)) = answers.take(&held) {
                    ends.push(ended);
                    held.drain(..taken);
                }
                let (taken, _) = answers.take(&held);
                held.drain(..taken);
            }
            assert_eq!(ends, [Ended::Well, Ended::Error(1213), Ended::Well], "cut at {cut}");
        }
    }
}
