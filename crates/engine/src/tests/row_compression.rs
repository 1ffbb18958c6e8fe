//! What is counted of tables with `ROW_FORMAT=COMPRESSED`.

use super::*;
use engine_api::{COMPRESSED, CompressionCounts};

const ROWS: i64 = 2000;

/// A table with these options besides its compression.
fn create(engine: &Engine, name: &str, other: &[(&str, &str)]) -> Tested {
    let mut table = definition();
    table.name = name.into();
    table.options.codec = COMPRESSED.to_owned();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    table.options.other = other.iter().map(owned).collect();
    Tested::create_as(engine, table)
}

fn fill(engine: &Engine, t: &Tested, content: impl Fn(i64) -> Vec<u8>) {
    for first in (0..ROWS).step_by(100) {
        let mut trx = engine.begin(options());
        for id in first..first + 100 {
            t.insert(&mut *trx, &row(id, id, Some(id), &content(id))).unwrap().unwrap();
        }
        trx.commit().unwrap();
    }
    engine.core.store.flush_until(engine.core.wal.end()).unwrap();
}

fn letters(_: i64) -> Vec<u8> {
    b"abcdefgh".repeat(100)
}

fn noise(id: i64) -> Vec<u8> {
    let mut random = base::Random::new(id as u64);
    (0..800).map(|_| random.below(256) as u8).collect()
}

fn sum(counts: &[CompressionCounts]) -> CompressionCounts {
    counts.iter().fold(CompressionCounts::default(), |sum, it| CompressionCounts {
        tried_pages: sum.tried_pages + it.tried_pages,
        compressed_pages: sum.compressed_pages + it.compressed_pages,
        compress_nanos: sum.compress_nanos + it.compress_nanos,
        decompressed_pages: sum.decompressed_pages + it.decompressed_pages,
        decompress_nanos: sum.decompress_nanos + it.decompress_nanos,
    })
}

#[test]
fn compression_of_compressed_rows_is_counted_by_index_and_by_block() {
    simulate(3, || {
        let engine = new_engine();
        let blocks_of_4 = [("ROW_FORMAT", "COMPRESSED"), ("KEY_BLOCK_SIZE", "4")];
        let good = create(&engine, "good", &blocks_of_4);
        let bad = create(&engine, "bad", &[("ROW_FORMAT", "COMPRESSED")]);
        let other = create(&engine, "other", &[("PAGE_COMPRESSED", "1")]);
        fill(&engine, &good, letters);
        fill(&engine, &bad, noise);
        fill(&engine, &other, letters);

        let [of_good, of_bad, of_other] =
            [&good, &bad, &other].map(|t| t.table.compression_counts(false));
        assert!(of_good[0].compressed_pages > 100, "{of_good:?}");
        assert!(of_good[0].tried_pages >= of_good[0].compressed_pages);
        let is_bad = 2 * of_bad[0].compressed_pages < of_bad[0].tried_pages;
        assert!(is_bad, "only pages that are not full gain: {of_bad:?}");
        assert_eq!(sum(&of_other), CompressionCounts::default());
        let classes = engine.compression_counts(false);
        assert_eq!(classes[2], sum(&of_good));
        assert_eq!(classes[3], sum(&of_bad), "half of a page of 16 KiB where no size is given");
        assert_eq!(sum(&classes), sum(&[classes[2], classes[3]]));

        let mut trx = engine.begin(options());
        engine.drop_table(&mut *trx, good.table.definition()).unwrap();
        trx.commit().unwrap();
        assert_eq!(good.table.compression_counts(false), [CompressionCounts::default(); 3]);
        assert_eq!(engine.compression_counts(true)[2], classes[2], "what it took remains");
        assert_eq!(sum(&engine.compression_counts(false)), CompressionCounts::default());
        assert_eq!(bad.table.compression_counts(true), of_bad);
        assert_eq!(bad.table.compression_counts(false), [CompressionCounts::default(); 3]);
        engine.close().unwrap();
    });
}

#[test]
fn pages_that_are_read_are_counted() {
    simulate(4, || {
        let engine = new_engine();
        let t = create(&engine, "t", &[("KEY_BLOCK_SIZE", "16")]);
        fill(&engine, &t, letters);
        let definition = t.table.definition().clone();
        engine.close().unwrap();
        drop((t, engine));

        let engine = new_engine();
        let t = Tested { table: engine.open_table(definition).unwrap() };
        let before = engine.core.store.counters().decompressed_pages;
        let mut trx = engine.begin(options());
        for id in (0..ROWS).step_by(50) {
            assert!(t.get(&mut *trx, id, LockMode::None).unwrap().is_some());
        }
        trx.commit().unwrap();
        let read = engine.core.store.counters().decompressed_pages - before;
        let counted = t.table.compression_counts(false)[0].decompressed_pages;
        assert!(counted >= 30, "{counted}");
        assert!(counted <= read, "{counted} of {read}");
        assert_eq!(engine.compression_counts(false)[4].decompressed_pages, counted);
        engine.close().unwrap();
    });
}
