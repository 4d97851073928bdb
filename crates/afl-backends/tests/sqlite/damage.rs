//! Files that are not what they should be: each has its own error, and none causes a panic.

use std::fs;

use rusqlite::Connection;

use super::*;

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path(), "dear diary, ".repeat(1_000)).unwrap();
    assert_eq!(
        folder.refusal(),
        "store.db is not a store of AgentFlow, or its beginning is damaged: name another file, or bring this one \
         back from a backup"
    );
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    Connection::open(folder.path()).unwrap().execute_batch("CREATE TABLE diary (entry)").unwrap();
    let before = fs::read(folder.path()).unwrap();
    assert_eq!(folder.refusal(), "store.db belongs to another program: name another file for the store");
    assert_eq!(fs::read(folder.path()).unwrap(), before);
}

// G14: an older process refuses a newer schema.
#[test]
fn a_file_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    let newer = "UPDATE meta SET value = 99 WHERE name = 'format'";
    Connection::open(folder.path()).unwrap().execute_batch(newer).unwrap();
    assert_eq!(
        folder.refusal(),
        "the store store.db was made by a newer AgentFlow (format 99, this one knows 3): use that version, or name \
         another file"
    );
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = Folder::new();
    let error = Sqlite::open(&folder.0.path().join("none/store.db"), Options::default()).unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("check that its folder is there"), "{error}");
}

#[test]
fn a_folder_in_place_of_the_file_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.path()).unwrap();
    folder.refusal();
}

#[tokio::test]
async fn a_cut_or_overwritten_file_gives_an_error_or_the_truth() {
    let folder = Folder::new();
    let store = folder.open();
    for index in 0..200 {
        let body = format!("{index}{}", "x".repeat(2_000));
        commit(&store, Durability::Relaxed, insert(&format!("{index:03}"), body)).await.unwrap();
    }
    let truth = all(&store).await.unwrap();
    drop(store);
    let whole = fs::read(folder.path()).unwrap();

    let mut failures = 0;
    for page in 0..40 {
        let at = whole.len() * page / 40;
        let mut holed = whole.clone();
        holed[at..(at + 3_000).min(whole.len())].fill(0xa5);
        for damaged in [whole[..at].to_vec(), holed] {
            fs::write(folder.path(), &damaged).unwrap();
            failures += usize::from(!is_sound(&folder, &truth).await);
        }
    }
    assert!(failures > 20, "{failures}");
}

/// Whether the file can be read. Whatever it does, it must not panic, and it must not forget quietly.
async fn is_sound(folder: &Folder, truth: &[Record]) -> bool {
    let store = match Sqlite::open(&folder.path(), Options::default()) {
        Ok(store) => store,
        Err(StoreError::Refused(_)) => return false,
        Err(other) => panic!("{other:?}"),
    };
    match all(&store).await {
        Ok(found) => {
            // An overwritten body is found by its seal, above the backend; an empty file is a new store.
            assert!(found.len() == truth.len() || found.is_empty(), "{} of {}", found.len(), truth.len());
            true
        }
        Err(StoreError::Refused(_)) => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_damaged_row_comes_as_a_record_that_does_not_open_and_can_be_deleted() {
    for damage in ["version = -7", "checksum = -7", "rank = NULL", "body = 7"] {
        let folder = Folder::new();
        let store = folder.open();
        for id in ["a", "b", "c"] {
            commit(&store, Durability::Relaxed, insert(id, "{}")).await.unwrap();
        }
        let sql = format!("UPDATE records SET {damage} WHERE id = 'b'");
        Connection::open(folder.path()).unwrap().execute_batch(&sql).unwrap();
        let found = store.get(&[key("a"), key("b")]).await.unwrap();
        let [Some(_), Some(hurt)] = &found[..] else { panic!("both are there: {found:?}") };
        assert_eq!(hurt.content.body.is_empty(), damage != "rank = NULL", "{damage}");
        assert_eq!(all(&store).await.unwrap().len(), 3, "{damage}");
        assert_eq!(store.heads(&hurt.key.tenant, "").await.unwrap().len(), 1, "{damage}");
        let sound = Write { expect: Expect::Absent, ..insert("b", "{}") };
        assert!(commit(&store, Durability::Relaxed, sound).await.is_err());
        let expect = Expect::Version(hurt.version);
        let deleted = Write { key: hurt.key.clone(), expect, change: Change::Delete };
        commit(&store, Durability::Relaxed, deleted).await.unwrap();
        assert_eq!(all(&store).await.unwrap().len(), 2, "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_record_does_not_stop_the_queue_behind_it() {
    let folder = Folder::new();
    let store = folder.open();
    for id in ["a", "b", "c"] {
        commit(&store, Durability::Relaxed, insert(id, "{}")).await.unwrap();
    }
    let damage = "UPDATE records SET id = CAST(x'61ff' AS TEXT) WHERE id = 'b';
                  UPDATE records SET checksum = -7 WHERE id = 'a'";
    Connection::open(folder.path()).unwrap().execute_batch(damage).unwrap();
    let whole = take(9);
    let mover = whole.decide.clone();
    let is_hurt = |record: &Record| record.content.body.is_empty() || record.key.id.len() > 1;
    let careful = move |record: &Record, now| {
        if is_hurt(record) { Decision::Leave } else { mover(record, now) }
    };
    let taken = store.take(Take { decide: Arc::new(careful), ..whole }).await.unwrap().moved;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].key.id, "c");
    assert_eq!(all(&store).await.unwrap().len(), 3);
}
