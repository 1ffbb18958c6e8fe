//! Parameters of prepared statements, each with the type that a driver sends.

use crate::packet::put_length_encoded;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    type_code: u8,
    unsigned: bool,
    /// As it goes over the wire; `None` for NULL.
    bytes: Option<Vec<u8>>,
}

const TYPE_NULL: u8 = 6;
const TYPE_VAR_STRING: u8 = 253;

impl Parameter {
    /// A string, or NULL.
    pub fn text(value: Option<&[u8]>) -> Self {
        Self::with_length(TYPE_VAR_STRING, value)
    }

    fn with_length(type_code: u8, value: Option<&[u8]>) -> Self {
        let bytes = value.map(|value| {
            let mut bytes = Vec::with_capacity(value.len() + 4);
            put_length_encoded(&mut bytes, value.len() as u64);
            bytes.extend_from_slice(value);
            bytes
        });
        Self { type_code, unsigned: false, bytes }
    }

    /// From `TYPE:VALUE` (`int:5`, `float:1.5`, `datetime:2024-01-02 03:04:05`), `NULL`, or a
    /// string as it is.
    pub fn parse(word: &str) -> Result<Self, String> {
        if word == "NULL" {
            return Ok(Self { type_code: TYPE_NULL, unsigned: false, bytes: None });
        }
        let Some((kind, value)) = word.split_once(':') else {
            return Ok(Self::text(Some(word.as_bytes())));
        };
        let (kind, unsigned) = match kind.strip_prefix('u') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let bad = || format!("'{word}' is not of its type");
        let integer = |type_code: u8, width: usize| -> Result<Self, String> {
            let value: i128 = value.parse().map_err(|_| bad())?;
            let bytes = Some(value.to_le_bytes()[..width].to_vec());
            Ok(Self { type_code, unsigned, bytes })
        };
        match kind {
            "tiny" => integer(1, 1),
            "short" => integer(2, 2),
            "int" => integer(3, 4),
            "bigint" => integer(8, 8),
            "float" => {
                let value: f32 = value.parse().map_err(|_| bad())?;
                Ok(Self { type_code: 4, unsigned, bytes: Some(value.to_le_bytes().to_vec()) })
            }
            "double" => {
                let value: f64 = value.parse().map_err(|_| bad())?;
                Ok(Self { type_code: 5, unsigned, bytes: Some(value.to_le_bytes().to_vec()) })
            }
            "datetime" => Ok(Self { type_code: 12, unsigned, bytes: Some(temporal(value)?) }),
            "timestamp" => Ok(Self { type_code: 7, unsigned, bytes: Some(temporal(value)?) }),
            "date" => Ok(Self { type_code: 10, unsigned, bytes: Some(temporal(value)?) }),
            "time" => Ok(Self { type_code: 11, unsigned, bytes: Some(time(value)?) }),
            "decimal" => Ok(Self::with_length(246, Some(value.as_bytes()))),
            "blob" => Ok(Self::with_length(252, Some(value.as_bytes()))),
            "varstring" => Ok(Self::with_length(TYPE_VAR_STRING, Some(value.as_bytes()))),
            "string" => Ok(Self::with_length(254, Some(value.as_bytes()))),
            "long-data" => Ok(Self { type_code: 252, unsigned, bytes: Some(Vec::new()) }),
            _ => Ok(Self::text(Some(word.as_bytes()))),
        }
    }
}

/// The numbers in a text such as `2024-01-02 03:04:05.5`; the fraction in microseconds.
fn numbers(text: &str) -> Result<(Vec<u32>, u32), String> {
    let bad = |_| format!("'{text}' is not a date or time");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros = format!("{fraction:0<6}").parse().map_err(bad)?;
    let parts = whole.split(['-', ' ', ':']).map(|part| part.parse().map_err(bad));
    Ok((parts.collect::<Result<_, _>>()?, micros))
}

fn temporal(text: &str) -> Result<Vec<u8>, String> {
    let (parts, micros) = numbers(text)?;
    let mut bytes = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        match position {
            0 => bytes.extend_from_slice(&(*part as u16).to_le_bytes()),
            _ => bytes.push(*part as u8),
        }
    }
    if micros != 0 {
        bytes.extend_from_slice(&micros.to_le_bytes());
    }
    bytes.insert(0, bytes.len() as u8);
    Ok(bytes)
}

fn time(text: &str) -> Result<Vec<u8>, String> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (1, text),
        None => (0, text),
    };
    let (parts, micros) = numbers(text)?;
    let [hours, minutes, seconds] = parts[..] else {
        return Err(format!("'{text}' is not a time"));
    };
    let mut bytes = vec![negative];
    bytes.extend_from_slice(&(hours / 24).to_le_bytes());
    bytes.extend_from_slice(&[(hours % 24) as u8, minutes as u8, seconds as u8]);
    if micros != 0 {
        bytes.extend_from_slice(&micros.to_le_bytes());
    }
    bytes.insert(0, bytes.len() as u8);
    Ok(bytes)
}

/// Appends the NULL bitmap, the types and the values, as COM_STMT_EXECUTE wants them.
pub fn put(out: &mut Vec<u8>, parameters: &[Parameter]) {
    if parameters.is_empty() {
        return;
    }
    let mut bitmap = vec![0u8; parameters.len().div_ceil(8)];
    for (position, parameter) in parameters.iter().enumerate() {
        if parameter.bytes.is_none() {
            bitmap[position / 8] |= 1 << (position % 8);
        }
    }
    out.extend_from_slice(&bitmap);
    out.push(1);
    for parameter in parameters {
        out.extend_from_slice(&[parameter.type_code, if parameter.unsigned { 0x80 } else { 0 }]);
    }
    for bytes in parameters.iter().filter_map(|parameter| parameter.bytes.as_ref()) {
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_parameters() {
        let bytes = |word: &str| Parameter::parse(word).unwrap().bytes;
        assert_eq!(bytes("int:-2"), Some(vec![0xfe, 0xff, 0xff, 0xff]));
        assert_eq!(bytes("ubigint:18446744073709551615"), Some(vec![0xff; 8]));
        assert_eq!(bytes("NULL"), None);
        assert_eq!(bytes("date:2024-02-29"), Some(vec![4, 0xe8, 7, 2, 29]));
        assert_eq!(bytes("time:-25:00:01"), Some(vec![8, 1, 1, 0, 0, 0, 1, 0, 1]));
        assert_eq!(bytes("a:b"), Some(vec![3, b'a', b':', b'b']));
        assert!(Parameter::parse("int:x").is_err());
        let mut out = Vec::new();
        put(&mut out, &[Parameter::parse("tiny:1").unwrap(), Parameter::parse("NULL").unwrap()]);
        assert_eq!(out, [2, 1, 1, 0, 6, 0, 1]);
    }
}
