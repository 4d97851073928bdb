//! Files that are not what they should be: each is told from the others, and none makes a panic.

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

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    let newer = "UPDATE meta SET value = 99 WHERE name = 'format'";
    Connection::open(folder.path()).unwrap().execute_batch(newer).unwrap();
    assert_eq!(
        folder.refusal(),
        "the store store.db was made by a newer AgentFlow (format 99, this one knows 2): use that version, or name \
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
        Err(StoreError::Refused(_) | StoreError::Damaged { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_damaged_record_is_named_and_the_others_are_read() {
    let folder = Folder::new();
    let store = folder.open();
    for id in ["a", "b", "c"] {
        commit(&store, Durability::Relaxed, insert(id, "{}")).await.unwrap();
    }
    let damage = "UPDATE records SET version = -7 WHERE id = 'b'";
    Connection::open(folder.path()).unwrap().execute_batch(damage).unwrap();
    let error = store.get(&[key("a"), key("b")]).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { key, .. } if key.id == "b"), "{error:?}");
    assert!(store.get(&[key("a"), key("c")]).await.unwrap().iter().all(Option::is_some));
    let over = Write { expect: Expect::Version(1), ..insert("b", "{}") };
    let error = commit(&store, Durability::Relaxed, over).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn a_damaged_record_does_not_stop_the_queue_behind_it() {
    let folder = Folder::new();
    let store = folder.open();
    for id in ["a", "b", "c"] {
        commit(&store, Durability::Relaxed, insert(id, "{}")).await.unwrap();
    }
    let damage = "UPDATE records SET id = CAST(x'61ff' AS TEXT) WHERE id = 'b';
                  UPDATE records SET version = -7 WHERE id = 'a'";
    Connection::open(folder.path()).unwrap().execute_batch(damage).unwrap();
    let taken = store.take(take(9)).await.unwrap().moved;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].key.id, "c");
    let error = all(&store).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
}
