//! Constants, and the types that CAST names.

use super::{Done, Printer};
use crate::ast::*;
use std::fmt::Write;

impl Printer<'_> {
    pub(super) fn cast_type(&mut self, target: &TypeName) -> Done {
        use TypeNameKind as T;
        let word = match target.kind {
            T::CastSigned | T::Int | T::BigInt if !target.unsigned => "signed",
            T::CastSigned | T::CastUnsigned | T::Int | T::BigInt => "unsigned",
            T::Char | T::VarChar => "char",
            T::Binary | T::VarBinary => "binary",
            T::Date => "date",
            T::Time => "time",
            T::DateTime | T::Timestamp => "datetime",
            T::Decimal => "decimal",
            T::Double => "double",
            T::Float => "float",
            _ => return Err("this type in CAST"),
        };
        self.push(word);
        match (target.length, target.scale) {
            (Some(length), Some(scale)) => self.push(&format!("({length},{scale})")),
            (Some(length), None) if word == "decimal" => self.push(&format!("({length},0)")),
            (Some(length), None) => self.push(&format!("({length})")),
            (None, _) if word == "decimal" => self.push("(10,0)"),
            _ => {}
        }
        if word == "char" {
            let charset = target.charset.as_deref().unwrap_or("utf8mb4");
            let _ = write!(self.out, " charset {charset}");
        }
        Ok(())
    }

    pub(super) fn text(&mut self, bytes: &[u8]) {
        self.push("'");
        for c in String::from_utf8_lossy(bytes).chars() {
            match c {
                '\'' => self.push("\\'"),
                '\\' => self.push("\\\\"),
                '\0' => self.push("\\0"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\x1a' => self.push("\\Z"),
                c => self.out.push(c),
            }
        }
        self.push("'");
    }

    pub(super) fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.push("NULL"),
            Literal::Boolean(value) => self.push(if *value { "1" } else { "0" }),
            Literal::String { bytes, charset } => {
                if let Some(charset) = charset {
                    let _ = write!(self.out, "_{charset}");
                }
                if std::str::from_utf8(bytes).is_err() {
                    self.push("X'");
                    bytes.iter().for_each(|byte| {
                        let _ = write!(self.out, "{byte:02X}");
                    });
                    self.push("'");
                } else {
                    self.text(bytes);
                }
            }
            other => self.push(&other.to_string()),
        }
    }
}
