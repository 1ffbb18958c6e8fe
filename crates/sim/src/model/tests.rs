use super::*;
use std::collections::BTreeMap;

const KEY: &[u8] = b"k";
const OTHER: &[u8] = b"o";

fn row(text: &str) -> Option<&[u8]> {
    Some(text.as_bytes())
}

fn committed(model: &mut Model, rows: &[(&[u8], &str)]) -> Trx {
    let trx = model.begin(Promise::Power);
    rows.iter().for_each(|(key, text)| model.write(trx, 0, key, row(text)));
    model.commit_called(trx);
    model.commit_returned(trx).expect("nobody passed its locks");
    trx
}

fn found(rows: &[(&[u8], &str)]) -> Vec<Option<BTreeMap<Vec<u8>, Vec<u8>>>> {
    let rows = rows.iter().map(|(key, text)| (key.to_vec(), text.as_bytes().to_vec()));
    vec![Some(rows.collect())]
}

#[test]
fn a_snapshot_sees_a_transaction_whole() {
    let mut model = Model::new(1);
    committed(&mut model, &[(KEY, "1"), (OTHER, "1")]);
    let reader = model.begin(Promise::Power);
    let writer = model.begin(Promise::Power);
    model.write(writer, 0, KEY, row("2"));
    model.write(writer, 0, OTHER, row("2"));
    model.commit_called(writer);
    let begin = model.tick();
    let mut snapshot = model.snapshot(reader, begin);
    let mut second = snapshot.clone();
    model.commit_returned(writer).expect("nobody passed its locks");
    model.observe(&mut snapshot, 0, KEY, row("2")).expect("may be seen");
    assert!(model.observe(&mut snapshot, 0, OTHER, row("1")).is_err());
    model.observe(&mut snapshot, 0, OTHER, row("2")).expect("seen before");
    model.observe(&mut second, 0, KEY, row("1")).expect("may be unseen");
    assert!(model.observe(&mut second, 0, OTHER, row("2")).is_err());
    let mut late = model.snapshot(reader, begin + 10);
    assert!(model.observe(&mut late, 0, KEY, row("1")).is_err());
}

#[test]
fn a_snapshot_never_sees_active_or_later_transactions_but_its_own() {
    let mut model = Model::new(1);
    let reader = model.begin(Promise::Power);
    let begin = model.tick();
    let mut snapshot = model.snapshot(reader, begin);
    committed(&mut model, &[(KEY, "1")]);
    model.observe(&mut snapshot, 0, KEY, None).expect("committed later");
    assert!(model.observe(&mut snapshot, 0, KEY, row("1")).is_err());
    model.write(reader, 0, OTHER, row("own"));
    model.observe(&mut snapshot, 0, OTHER, row("own")).expect("its own");
    assert!(model.observe(&mut snapshot, 0, OTHER, None).is_err());
}

#[test]
fn what_a_snapshot_sees_is_a_prefix() {
    let mut model = Model::new(1);
    let reader = model.begin(Promise::Power);
    let begin = model.tick();
    committed(&mut model, &[(KEY, "1")]);
    committed(&mut model, &[(OTHER, "2")]);
    let mut snapshot = model.snapshot(reader, begin);
    model.observe(&mut snapshot, 0, OTHER, row("2")).expect("may be seen");
    model.finish_snapshot(&snapshot).expect("nothing known of the first");
    model.observe(&mut snapshot, 0, KEY, None).expect("alone it may be unseen");
    assert!(model.finish_snapshot(&snapshot).is_err());
}

#[test]
fn locking_reads_give_the_newest_row_and_wait_for_writers() {
    let mut model = Model::new(1);
    committed(&mut model, &[(KEY, "1")]);
    let writer = model.begin(Promise::Power);
    model.write(writer, 0, KEY, row("2"));
    let reader = model.begin(Promise::Power);
    let begin = model.tick();
    assert!(model.observe_locked(reader, begin, 0, KEY, row("1")).is_err());
    assert!(model.observe_locked(reader, begin, 0, KEY, row("2")).is_err());
    model.enter_call(writer);
    model.observe_locked(reader, begin, 0, KEY, row("1")).expect("perhaps a victim");
    assert!(model.leave_call(writer).is_err(), "it was none");
    model.commit_called(writer);
    assert!(model.observe_locked(reader, begin, 0, KEY, row("1")).is_err());
    model.observe_locked(reader, begin, 0, KEY, row("2")).expect("the newest");
}

#[test]
fn who_was_passed_in_a_call_that_a_fault_ended_can_only_end() {
    let mut model = Model::new(1);
    let writer = model.begin(Promise::Power);
    model.write(writer, 0, KEY, row("1"));
    let reader = model.begin(Promise::Power);
    model.enter_call(writer);
    let begin = model.tick();
    model.observe_locked(reader, begin, 0, KEY, None).expect("it is being undone");
    model.leave_failed_call(writer);
    let (mut goes_on, mut commits) = (model.clone(), model.clone());
    goes_on.enter_call(writer);
    assert!(goes_on.leave_call(writer).is_err(), "half of it is undone");
    commits.commit_called(writer);
    assert!(commits.commit_returned(writer).is_err(), "half of it is undone");
    model.abort(writer);
    model.observe_locked(reader, begin, 0, KEY, None).expect("it is gone");
}

#[test]
fn a_crash_keeps_acknowledged_and_whole_transactions() {
    let mut base = Model::new(1);
    committed(&mut base, &[(KEY, "1"), (OTHER, "1")]);
    let pending = base.begin(Promise::Power);
    base.write(pending, 0, KEY, row("2"));
    base.write(pending, 0, OTHER, row("2"));
    base.commit_called(pending);
    let active = base.begin(Promise::Power);
    base.write(active, 0, b"x", row("3"));
    let after = |rows: &[(&[u8], &str)]| base.clone().recovered(&found(rows), true);
    let kept = after(&[(KEY, "2"), (OTHER, "2")]).expect("whole");
    assert_eq!((kept.survived, kept.lost, kept.undone), (2, 0, 1));
    let lost = after(&[(KEY, "1"), (OTHER, "1")]).expect("not at all");
    assert_eq!((lost.survived, lost.lost), (1, 1));
    assert!(after(&[(KEY, "2"), (OTHER, "1")]).is_err(), "half");
    assert!(after(&[(KEY, "1")]).is_err(), "acknowledged and lost");
    assert!(after(&[(KEY, "1"), (OTHER, "1"), (b"x", "3")]).is_err(), "never committed");
    assert!(after(&[(KEY, "1"), (OTHER, "1"), (b"y", "3")]).is_err(), "never written");
}

#[test]
fn weak_promises_lose_a_suffix_only() {
    let mut base = Model::new(1);
    for (key, text) in [(KEY, "1"), (OTHER, "2")] {
        let trx = base.begin(Promise::Process);
        base.write(trx, 0, key, row(text));
        base.commit_called(trx);
        base.commit_returned(trx).expect("nobody passed its locks");
    }
    let after = |rows: &[(&[u8], &str)], power| base.clone().recovered(&found(rows), power);
    after(&[], true).expect("nothing promised");
    after(&[(KEY, "1")], true).expect("a prefix");
    assert!(after(&[(OTHER, "2")], true).is_err(), "not a prefix");
    assert!(after(&[(KEY, "1")], false).is_err(), "the process end loses nothing");
}

#[test]
fn a_key_of_an_index_tells_of_its_writer_only() {
    let mut model = Model::new(1);
    for text in ["a1", "b2", "b3"] {
        let trx = model.begin(Promise::Nothing);
        model.write(trx, 0, KEY, row(text));
        model.commit_called(trx);
        model.commit_returned(trx).expect("nobody passed its locks");
    }
    let reader = model.begin(Promise::Power);
    let begin = model.tick();
    let mut snapshot = model.snapshot(reader, begin);
    let has_b = |row: &[u8]| row.starts_with(b"b");
    model.observe_index_key(&mut snapshot, 0, KEY, has_b).expect("the newest");
    model.tell(&snapshot);
    let after = |text| model.clone().recovered(&found(&[(KEY, text)]), true);
    after("b3").expect("all of them");
    after("b2").expect("the last one was not told of, its index key is that of the one before");
    assert!(after("a1").is_err(), "the one that made the key was told of");
    let begin = model.tick();
    let mut snapshot = model.snapshot(reader, begin);
    model.observe(&mut snapshot, 0, KEY, row("b3")).expect("the newest");
    model.tell(&snapshot);
    let after = |text| model.clone().recovered(&found(&[(KEY, text)]), true);
    after("b3").expect("all of them");
    assert!(after("b2").is_err(), "the row itself was told");
}
