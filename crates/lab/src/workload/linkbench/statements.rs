//! The statements.

/// Most ids in a request for several links.
pub(super) const MULTIGET_MAX: usize = 127;

/// Above the length of a link's payload.
pub(super) const LINK_BYTES_MAX: u64 = 256;
/// Above the length of a node's payload.
pub(super) const NODE_BYTES_MAX: u64 = 1 << 20;

const LINK_COLUMNS: &str = "id1, id2, link_type, visibility, data, time, version";

/// A statement; those that ask for several links follow, by the number of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    AddLink,
    UpdateLink,
    CountUp,
    LockLink,
    HideLink,
    CountDown,
    CountLink,
    LinkList,
    LinkHistory,
    AddNode,
    UpdateNode,
    DeleteNode,
    GetNode,
}

const FIXED: [Statement; 13] = [
    Statement::AddLink,
    Statement::UpdateLink,
    Statement::CountUp,
    Statement::LockLink,
    Statement::HideLink,
    Statement::CountDown,
    Statement::CountLink,
    Statement::LinkList,
    Statement::LinkHistory,
    Statement::AddNode,
    Statement::UpdateNode,
    Statement::DeleteNode,
    Statement::GetNode,
];

/// The number of the statement for so many links.
pub(super) fn multiget(ids: usize) -> usize {
    FIXED.len() + ids - 1
}

/// All texts, by number.
pub(super) fn texts() -> Vec<String> {
    let several = (1..=MULTIGET_MAX).map(|ids| {
        let values = vec!["?"; ids].join(",");
        format!(
            "SELECT {LINK_COLUMNS} FROM linktable WHERE id1=? AND link_type=? AND id2 IN ({values})"
        )
    });
    FIXED.into_iter().map(text).chain(several).collect()
}

fn text(statement: Statement) -> String {
    let link = "WHERE id1=? AND id2=? AND link_type=?";
    let list = format!(
        "SELECT {LINK_COLUMNS} FROM linktable FORCE INDEX(id1_type) WHERE id1=? AND link_type=? \
         AND time>=0 AND time<=? AND visibility=1 ORDER BY time DESC"
    );
    let count = "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES (?, ?, ?, ?, 0) ON DUPLICATE KEY UPDATE";
    match statement {
        Statement::AddLink => {
            "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
             VALUES (?, ?, ?, 1, ?, ?, 0) ON DUPLICATE KEY UPDATE visibility=VALUES(visibility)"
                .into()
        }
        Statement::UpdateLink => {
            format!("UPDATE linktable SET visibility=1, data=?, time=?, version=0 {link}")
        }
        Statement::CountUp => {
            format!("{count} count=count+VALUES(count), version=version+1, time=VALUES(time)")
        }
        Statement::LockLink => format!("SELECT visibility FROM linktable {link} FOR UPDATE"),
        Statement::HideLink => format!("UPDATE linktable SET visibility=0 {link}"),
        Statement::CountDown => {
            format!("{count} count=IF(count=0, 0, count-1), time=VALUES(time), version=version+1")
        }
        Statement::CountLink => "SELECT count FROM counttable WHERE id=? AND link_type=?".into(),
        Statement::LinkList => format!("{list} LIMIT 0,10000"),
        Statement::LinkHistory => format!("{list} LIMIT 1,10000"),
        Statement::AddNode => {
            "INSERT INTO nodetable (type, version, time, data) VALUES (?, 1, ?, ?)".into()
        }
        Statement::UpdateNode => {
            "UPDATE nodetable SET version=2, time=?, data=? WHERE id=? AND type=?".into()
        }
        Statement::DeleteNode => "DELETE FROM nodetable WHERE id=? AND type=?".into(),
        Statement::GetNode => {
            "SELECT id, type, version, time, data FROM nodetable WHERE id=?".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_texts() {
        let texts = texts();
        assert_eq!(texts.len(), FIXED.len() + MULTIGET_MAX);
        for statement in FIXED {
            assert_eq!(texts[statement as usize], text(statement));
        }
        for ids in 1..=MULTIGET_MAX {
            assert_eq!(texts[multiget(ids)].matches('?').count(), ids + 2);
        }
    }
}
