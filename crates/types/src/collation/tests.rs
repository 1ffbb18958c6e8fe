use super::*;
use std::hash::DefaultHasher;

const TEXTS: &[&str] = &[
    "",
    " ",
    "  ",
    "a",
    "A",
    "a ",
    "a  ",
    "a\0",
    "a \0",
    "a  \0",
    "a\t",
    "a \t",
    "a b",
    "a  b",
    "a !",
    "ab",
    "aB",
    "b",
    "é",
    "e",
    "E",
    "É ",
    "ß",
    "s",
    "ss",
    "😀",
    "😁",
    "中",
    "~",
    "\u{7f}",
    "\u{80}",
    "\0",
    "\0\0",
    " a",
    " \0",
    "  \0",
    "a\u{1f}",
    "a \u{1f} ",
    "a!",
    "A B",
    "ÿ",
    "z",
];

fn hash(collation: &Collation, text: &[u8]) -> u64 {
    let mut state = DefaultHasher::new();
    collation.hash_into(text, &mut state);
    state.finish()
}

#[test]
fn sort_keys_order_and_hash_as_the_comparison_does() {
    for collation in all().iter().filter(|c| c.charset == Charset::Utf8mb4 || c.is_binary()) {
        for a in TEXTS {
            for b in TEXTS {
                let (a, b) = (a.as_bytes(), b.as_bytes());
                let order = collation.compare(a, b);
                let (mut x, mut y) = (Vec::new(), Vec::new());
                push_sort_key(collation, a, &mut x);
                push_sort_key(collation, b, &mut y);
                assert_eq!(x.cmp(&y), order, "{} {a:?} {b:?}", collation.name);
                assert_eq!(order, collation.compare_weights(a, b), "{a:?} {b:?}");
                if order.is_eq() {
                    assert_eq!(hash(collation, a), hash(collation, b), "{a:?} {b:?}");
                }
                x.extend_from_slice(&y);
                assert_eq!(sort_key_end(collation, &x, 0), Some(x.len() - y.len()));
                x.iter_mut().for_each(|byte| *byte ^= 0xff);
                assert_eq!(sort_key_end(collation, &x, 0xff), Some(x.len() - y.len()));
            }
        }
    }
}

/// Texts long enough for the steps of sixteen bytes, equal and different at all places.
fn long_texts() -> Vec<String> {
    let mut texts = Vec::new();
    for length in [7, 8, 15, 16, 17, 33] {
        for place in [0, 5, 8, length - 1] {
            for piece in ["x", "X", "~", " ", "\t", "é", "😀", ""] {
                let mut text = "abcdEFGH{}!z".repeat(4);
                text.truncate(length);
                text.insert_str(place.min(length), piece);
                texts.push(text);
            }
        }
    }
    texts
}

#[test]
fn sort_keys_of_long_texts_order_as_the_comparison_does() {
    let texts = long_texts();
    for collation in all() {
        for a in &texts {
            for b in &texts {
                let (a, b) = (a.as_bytes(), b.as_bytes());
                let order = collation.compare_weights(a, b);
                let (mut x, mut y) = (Vec::new(), Vec::new());
                push_sort_key(collation, a, &mut x);
                push_sort_key(collation, b, &mut y);
                assert_eq!(x.cmp(&y), order, "{} {a:?} {b:?}", collation.name);
            }
        }
    }
}

/// The head is what its definition says, for texts of every length around eight bytes.
#[test]
fn heads_are_the_first_eight_bytes_of_sort_keys() {
    let mut texts = long_texts();
    texts.extend(TEXTS.iter().map(|text| text.to_string()));
    let ends = ["", " ", "a", "Z", "!", "~", "}", "\t", "é", "[", "`", "{", "@"];
    for start in ["", "Name ", "zZaA  ", "a b c d", "       ", "1234567"] {
        for middle in ends {
            texts.extend(ends.map(|end| format!("{start}{middle}{end}")));
        }
    }
    for text in TEXTS.iter().chain(&["z{|}", "@[`a", "!~"]) {
        texts.extend((0..10).map(|length| format!("{}{text}", "aB".repeat(length))));
        texts.extend((0..10).map(|length| format!("{}{text}", " ".repeat(length))));
    }
    let mut random = base::Random::new(1);
    let mut texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    for length in 0..400 {
        texts.push((0..length % 14).map(|_| random.below(128) as u8).collect());
        texts.push((0..length % 14).map(|_| random.below(256) as u8).collect());
    }
    for collation in all() {
        for text in &texts {
            let mut key = Vec::new();
            push_sort_key(collation, text, &mut key);
            let is_whole = key.len() <= 8;
            key.resize(8.max(key.len()), 0);
            let number = u64::from_be_bytes(*key.first_chunk().expect("eight bytes"));
            let expected = SortKeyHead { number, is_whole };
            assert_eq!(sort_key_head(collation, text), expected, "{} {text:?}", collation.name);
        }
    }
}

#[test]
fn like_matches_by_characters() {
    let ci = CollationId::UTF8MB4_GENERAL_CI.info();
    let bin = CollationId::UTF8MB4_BIN.info();
    let check = |c: &Collation, t: &str, p: &str| {
        like(c, t.as_bytes(), p.as_bytes(), Some(u32::from('\\')))
    };
    assert!(check(ci, "Hello", "h%O"));
    assert!(!check(bin, "Hello", "h%O"));
    assert!(check(ci, "aXbXc", "a%x%c"));
    assert!(check(ci, "é", "_"));
    assert!(check(ci, "50%", "50\\%"));
    assert!(!check(ci, "500", "50\\%"));
    assert!(check(ci, "", "%"));
    assert!(!check(ci, "a ", "a"));
    assert!(check(ci, "aaaaaaaaab", "%a%a%b"));
    assert_eq!(like_prefix(ci, b"ab\\%c%", Some(92)), (b"ab%c".to_vec(), true));
    assert_eq!(like_prefix(ci, b"ab_%", Some(92)), (b"ab".to_vec(), false));
    assert_eq!(find(ci, "xxÉtat".as_bytes(), "étAT".as_bytes(), 0), Some(2));
    assert_eq!(find(ci, "xxÉtat".as_bytes(), "etAT".as_bytes(), 0), None);
}
