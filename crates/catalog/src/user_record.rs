//! The dictionary's record of an account or role.
//!
//! Records of format 1 end before the attributes, those of format 2 before the privileges on
//! columns; what they lack is empty.

use crate::encoding::{DecodeError, Reader, Writer};
use crate::{
    Account, AccountAttributes, AccountLimits, Authentication, ColumnGrant, HostPattern,
    PasswordLifetime, PrivilegeSet, RoleGrant, TlsRequirement, UserPrivileges,
};

const USER_FORMAT: u8 = 3;

type Decoded<T> = Result<T, DecodeError>;

impl UserPrivileges {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(USER_FORMAT);
        out.string(&self.account.user);
        out.string(&self.account.host.0);
        put_authentication(&self.authentication, &mut out);
        out.u64(self.global.bits());
        out.length(self.schemas.len());
        for (pattern, set) in &self.schemas {
            out.string(pattern);
            out.u64(set.bits());
        }
        out.length(self.tables.len());
        for (schema, table, set) in &self.tables {
            out.string(schema);
            out.string(table);
            out.u64(set.bits());
        }
        put_attributes(&self.attributes, &mut out);
        self.put_columns_and_roles(&mut out);
        out.finish()
    }

    fn put_columns_and_roles(&self, out: &mut Writer) {
        out.length(self.columns.len());
        for grant in &self.columns {
            out.string(&grant.schema);
            out.string(&grant.table);
            out.string(&grant.column);
            out.u64(grant.set.bits());
        }
        out.u8(u8::from(self.is_role));
        out.length(self.roles.len());
        for grant in &self.roles {
            out.string(&grant.role);
            out.u8(u8::from(grant.admin));
        }
        out.string(self.default_role.as_deref().unwrap_or_default());
        let attributes = &self.attributes;
        out.u8(u8::from(attributes.expired));
        out.u32(match attributes.lifetime {
            PasswordLifetime::Default => u32::MAX,
            PasswordLifetime::Never => 0,
            PasswordLifetime::Days(days) => u32::from(days),
        });
        out.u64(attributes.password_set_micros as u64);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Decoded<Self> {
        let format = match bytes.first() {
            Some(format @ 1..USER_FORMAT) => *format,
            _ => USER_FORMAT,
        };
        let mut input = Reader::new(bytes, format)?;
        let account = Account { user: input.string()?, host: HostPattern(input.string()?) };
        let authentication = authentication(&mut input)?;
        let mut user = Self::new(account, authentication);
        user.global = PrivilegeSet::from_bits(input.u64()?);
        for _ in 0..input.length()? {
            user.schemas.push((input.string()?, PrivilegeSet::from_bits(input.u64()?)));
        }
        for _ in 0..input.length()? {
            let (schema, table) = (input.string()?, input.string()?);
            user.tables.push((schema, table, PrivilegeSet::from_bits(input.u64()?)));
        }
        if format >= 2 {
            user.attributes = attributes(&mut input)?;
        }
        if format >= 3 {
            user.take_columns_and_roles(&mut input)?;
        }
        input.finish()?;
        Ok(user)
    }

    fn take_columns_and_roles(&mut self, input: &mut Reader<'_>) -> Decoded<()> {
        for _ in 0..input.length()? {
            self.columns.push(ColumnGrant {
                schema: input.string()?,
                table: input.string()?,
                column: input.string()?,
                set: PrivilegeSet::from_bits(input.u64()?),
            });
        }
        self.is_role = input.u8()? != 0;
        for _ in 0..input.length()? {
            self.roles.push(RoleGrant { role: input.string()?, admin: input.u8()? != 0 });
        }
        self.default_role = Some(input.string()?).filter(|role| !role.is_empty());
        self.attributes.expired = input.u8()? != 0;
        self.attributes.lifetime = match input.u32()? {
            u32::MAX => PasswordLifetime::Default,
            0 => PasswordLifetime::Never,
            days => PasswordLifetime::Days(
                u16::try_from(days).map_err(|_| DecodeError::Value("a password's lifetime"))?,
            ),
        };
        self.attributes.password_set_micros = input.u64()? as i64;
        Ok(())
    }
}

fn put_authentication(authentication: &Authentication, out: &mut Writer) {
    match authentication {
        Authentication::NoPassword => out.u8(0),
        Authentication::NativePassword(hash) => {
            out.u8(1);
            out.bytes(hash);
        }
        Authentication::Locked => out.u8(2),
        Authentication::CachingSha2(hash) => {
            out.u8(3);
            out.string(hash);
        }
        Authentication::Ed25519(key) => {
            out.u8(4);
            out.bytes(key);
        }
    }
}

fn authentication(input: &mut Reader<'_>) -> Decoded<Authentication> {
    Ok(match input.u8()? {
        0 => Authentication::NoPassword,
        1 => Authentication::NativePassword(
            input.bytes()?.try_into().map_err(|_| DecodeError::Value("a password hash"))?,
        ),
        2 => Authentication::Locked,
        3 => Authentication::CachingSha2(input.string()?),
        4 => Authentication::Ed25519(
            input.bytes()?.try_into().map_err(|_| DecodeError::Value("a public key"))?,
        ),
        _ => return Err(DecodeError::Value("an authentication method")),
    })
}

fn put_attributes(attributes: &AccountAttributes, out: &mut Writer) {
    out.u8(u8::from(attributes.locked));
    out.u8(match attributes.tls {
        TlsRequirement::Nothing => 0,
        TlsRequirement::Tls => 1,
        TlsRequirement::Certificate => 2,
    });
    let limits = &attributes.limits;
    out.u32(limits.queries_per_hour);
    out.u32(limits.updates_per_hour);
    out.u32(limits.connections_per_hour);
    out.u32(limits.user_connections as u32);
    out.u64(limits.statement_micros);
}

fn attributes(input: &mut Reader<'_>) -> Decoded<AccountAttributes> {
    Ok(AccountAttributes {
        locked: input.u8()? != 0,
        tls: match input.u8()? {
            0 => TlsRequirement::Nothing,
            1 => TlsRequirement::Tls,
            2 => TlsRequirement::Certificate,
            _ => return Err(DecodeError::Value("a requirement of TLS")),
        },
        limits: AccountLimits {
            queries_per_hour: input.u32()?,
            updates_per_hour: input.u32()?,
            connections_per_hour: input.u32()?,
            user_connections: input.u32()? as i32,
            statement_micros: input.u64()?,
        },
        ..AccountAttributes::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Privilege;

    fn sample() -> UserPrivileges {
        let mut user = UserPrivileges::new(Account::new("a", "%"), Authentication::NoPassword);
        let select = PrivilegeSet::NONE.with(Privilege::Select);
        user.global = select;
        user.schemas.push(("s%".to_owned(), select));
        user.tables.push(("x".to_owned(), "t".to_owned(), select));
        user.attributes.locked = true;
        user.attributes.tls = TlsRequirement::Certificate;
        user.attributes.limits.user_connections = -1;
        user
    }

    /// A record as the given format had it: without what came later.
    fn old_record(user: &UserPrivileges, format: u8) -> Vec<u8> {
        let mut later = Writer::new(0);
        UserPrivileges { ..user.clone() }.put_columns_and_roles(&mut later);
        let (later, attributes) = (later.finish(), 26);
        let mut record = user.encode();
        let checksum_and_format = 1;
        let without = match format {
            1 => later.len() - checksum_and_format + attributes,
            _ => later.len() - checksum_and_format,
        };
        record.truncate(record.len() - without);
        record[0] = format;
        record
    }

    #[test]
    fn records_of_all_formats_are_read() {
        let mut user = sample();
        assert_eq!(UserPrivileges::decode(&old_record(&user, 2)), Ok(user.clone()));
        let old = UserPrivileges { attributes: AccountAttributes::default(), ..user.clone() };
        assert_eq!(UserPrivileges::decode(&old_record(&user, 1)), Ok(old));
        user.columns.push(ColumnGrant {
            schema: "x".to_owned(),
            table: "t".to_owned(),
            column: "c".to_owned(),
            set: PrivilegeSet::NONE.with(Privilege::Update),
        });
        user.roles.push(RoleGrant { role: "r".to_owned(), admin: true });
        user.default_role = Some("r".to_owned());
        user.attributes.expired = true;
        user.attributes.password_set_micros = 1_700_000_000_000_000;
        for lifetime in [PasswordLifetime::Never, PasswordLifetime::Days(7)] {
            user.attributes.lifetime = lifetime;
            assert_eq!(UserPrivileges::decode(&user.encode()), Ok(user.clone()));
        }
        user.authentication = Authentication::CachingSha2("$A$005$".to_owned());
        assert_eq!(UserPrivileges::decode(&user.encode()), Ok(user.clone()));
        user.authentication = Authentication::Ed25519([7; 32]);
        assert_eq!(UserPrivileges::decode(&user.encode()), Ok(user));
        let role = UserPrivileges::new_role("r");
        assert_eq!(UserPrivileges::decode(&role.encode()), Ok(role));
    }
}
