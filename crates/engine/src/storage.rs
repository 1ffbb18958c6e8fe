//! Where the engine meets the page store's own options.

use base::TreeId;
use codec::CodecId;
use engine_api::{IndexDefinition, StorageUse};
use pagestore::{Compression, PageStore};

/// What [`engine_api::TableOptions::codec`] says of a table's pages; what is not known means the
/// store's default.
pub(crate) fn compression(text: &str) -> Compression {
    let (name, level) = text.split_once(':').unwrap_or((text, ""));
    let level = level.parse().unwrap_or(0);
    match (name, CodecId::from_name(name)) {
        (engine_api::COMPRESSED, _) => Compression::Compressed { level },
        (_, Some(codec)) => Compression::Fixed { codec, level },
        (_, None) => Compression::Store,
    }
}

/// Sets the compression of a tree's pages by the table's options.
pub(crate) fn set_codec(store: &PageStore, tree: TreeId, text: &str) {
    store.set_compression(tree, compression(text));
}

/// What an index takes up.
pub(crate) fn storage_of(store: &PageStore, index: &IndexDefinition) -> StorageUse {
    let usage = store.space().usage(index.tree);
    StorageUse {
        page_bytes: 1 << index.page_class,
        pages: usage.pages,
        raw_bytes: usage.raw_bytes,
        stored_bytes: usage.stored_bytes,
        garbage_bytes: usage.garbage_bytes as u64,
    }
}

/// What compression of an index has taken, if its rows are compressed.
pub(crate) fn counts_of(
    store: &PageStore,
    index: &IndexDefinition,
    resets: bool,
) -> engine_api::CompressionCounts {
    store.compression_of_tree(index.tree, resets).map(counts).unwrap_or_default()
}

const _: () = assert!(engine_api::COMPRESSED_BLOCK_CLASSES == pagestore::COUNTED_CLASSES);

/// The store's counts, as others know them.
pub(crate) fn counts(counts: pagestore::CompressionCounts) -> engine_api::CompressionCounts {
    engine_api::CompressionCounts {
        tried_pages: counts.tried_pages,
        compressed_pages: counts.compressed_pages,
        compress_nanos: counts.compress_nanos,
        decompressed_pages: counts.decompressed_pages,
        decompress_nanos: counts.decompress_nanos,
    }
}

/// Sets the algorithm and level of tables that are compressed and name none.
pub(crate) fn set_compressed(store: &PageStore, algorithm: &str, level: i32) {
    if let Some(codec) = CodecId::from_name(algorithm) {
        store.set_compressed(codec, level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_tables_are_read() {
        let fixed = |codec, level| Compression::Fixed { codec, level };
        assert_eq!(compression(""), Compression::Store);
        assert_eq!(compression("none"), fixed(CodecId::None, 0));
        assert_eq!(compression("compressed"), Compression::Compressed { level: 0 });
        assert_eq!(compression("compressed:4"), Compression::Compressed { level: 4 });
        assert_eq!(compression("lzma:9"), fixed(CodecId::Lzma, 9));
        assert_eq!(compression("of a later version"), Compression::Store);
    }
}
