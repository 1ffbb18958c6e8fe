//! Variables of users and of the system.

use super::*;

impl Parser<'_> {
    /// The name of a user variable behind `@`, both taken.
    pub(super) fn user_variable(&mut self) -> Result<String> {
        let at = self.token;
        self.expect(Symbol::At)?;
        if self.token.start != at.end {
            return Err(self.unexpected());
        }
        match self.token.kind {
            Kind::QuotedName => {
                let token = self.advance();
                self.to_utf8(unquote(self.bytes(token), false))
            }
            Kind::Text => self.text_string(),
            _ => self.raw_word(at.end),
        }
    }

    /// A run of name bytes and points from `start`, which is where the next token begins.
    pub(super) fn raw_word(&mut self, start: usize) -> Result<String> {
        let rest = &self.text[start..];
        let length = rest
            .iter()
            .position(|byte| !(crate::lexer::is_name_byte(*byte) || *byte == b'.'))
            .unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected());
        }
        self.lexer.seek(start + length);
        self.token = self.lexer.next();
        self.previous_end = start + length;
        self.to_utf8(rest[..length].to_vec())
    }

    /// `@name`, `@name := value`.
    #[inline(never)]
    pub(super) fn user_variable_expression(&mut self) -> Result<Expression> {
        let name = self.user_variable()?;
        if self.eat(Symbol::Assign) {
            let value = self.expression()?;
            return Ok(Expression::AssignUserVariable(name, Box::new(value)));
        }
        Ok(Expression::UserVariable(name))
    }

    /// `@@[global.|session.|local.][instance.]name`.
    #[inline(never)]
    pub(super) fn system_variable(&mut self) -> Result<SystemVariable> {
        self.expect(Symbol::DoubleAt)?;
        let scope = match self.token.kind {
            Kind::Word(Keyword::GLOBAL) if self.peek_is(Symbol::Dot) => VariableScope::Global,
            Kind::Word(Keyword::SESSION | Keyword::LOCAL) if self.peek_is(Symbol::Dot) => {
                VariableScope::Session
            }
            _ => VariableScope::Default,
        };
        if scope != VariableScope::Default {
            self.advance();
            self.advance();
        }
        let name = self.name_after_dot()?;
        if self.eat(Symbol::Dot) {
            let member = self.name_after_dot()?;
            return Ok(SystemVariable { scope, instance: Some(name), name: member });
        }
        Ok(SystemVariable { scope, instance: None, name })
    }
}
