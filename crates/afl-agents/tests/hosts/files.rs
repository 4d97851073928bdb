use std::os::unix::fs::symlink;

use afl_agents::handler::FailureKind;
use afl_agents::registration::{Checksum, Registration};
use serde_json::json;

use crate::world::{FACET, World};

/// What a URI that leads somewhere is told.
async fn told(world: &World, uri: &str, checksum: &str) -> (FailureKind, String) {
    let mut registration = Registration::new(FACET, uri);
    registration.checksum = checksum.to_owned();
    let ran = world.run(&registration, json!({})).await;
    let folder = world.path("").display().to_string();
    let message = ran.failure().message.replace(folder.trim_end_matches('/'), "[folder]");
    assert_eq!(
        world.hosts.check(&registration).await.err().map(|failure| failure.kind),
        Some(ran.failure().kind)
    );
    (ran.failure().kind, message)
}

#[tokio::test]
async fn f18_t12_only_files_under_the_roots_are_loaded() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.py");
    std::fs::write(&secret, "def handle(p): return {}").unwrap();
    symlink(&secret, world.path("link.py")).unwrap();
    symlink(outside.path(), world.path("linked")).unwrap();
    std::fs::create_dir(world.path("folder.py")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("pipe.py"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let file = |path: &str| format!("file://{}", world.path(path).display());

    for uri in [
        "file:///etc/passwd.py".to_owned(),
        format!("file://{}", secret.display()),
        format!("exec:{}", secret.display()),
        "exec:/bin/sh".to_owned(),
        file("link.py"),
        file("linked/secret.py"),
        "link".to_owned(),
        "linked.secret".to_owned(),
        file("folder.py"),
        file("pipe.py"),
        "file:///../../etc/shadow.py".to_owned(),
        "os".to_owned(),
        "subprocess".to_owned(),
    ] {
        let (kind, message) = told(&world, &uri, "").await;
        let expected = match uri.as_str() {
            "os" | "subprocess" | "file:///etc/passwd.py" | "file:///../../etc/shadow.py" => {
                FailureKind::NotFound
            }
            uri if uri.contains("folder.py") || uri.contains("pipe.py") => FailureKind::NotFound,
            _ => FailureKind::Refused,
        };
        assert_eq!(kind, expected, "{uri}: {message}");
    }
    // A link that stays inside is nobody's business.
    world.write("real.py", "def handle(p): return {'ok': True}");
    symlink("real.py", world.path("alias.py")).unwrap();
    assert_eq!(world.run(&Registration::new(FACET, "alias"), json!({})).await.result()["ok"], true);
}

#[tokio::test]
async fn t12_a_wrong_checksum_is_refused_before_anything_runs() {
    let world = World::new();
    let python = "open('/proc/self/cwd/never', 'w')\ndef handle(p): return {}";
    world.write("handlers.py", python);
    let program = world.program("program", "#!/bin/sh\ntouch $0.ran\necho '{}'\n");
    let wrong = Checksum::of(b"something else").to_string();
    for uri in ["handlers".to_owned(), format!("exec:{}", program.display())] {
        let (kind, message) = told(&world, &uri, &wrong).await;
        assert_eq!(kind, FailureKind::Refused);
        assert!(message.contains("register the new checksum if the change is meant"), "{message}");
    }
    assert!(!world.path("program.ran").exists());
}

#[tokio::test]
async fn f18_the_verified_bytes_of_a_program_are_what_runs() {
    let world = World::new();
    let text = "#!/bin/sh\nprintf '{\"ran\": \"verified\", \"program\": \"%s\"}' $AFL_PROGRAM\n";
    let program = world.program("program", text);
    let mut registration = Registration::new(FACET, format!("exec:{}", program.display()));
    registration.checksum = format!("sha256:{}", Checksum::of(text.as_bytes()));
    let result = world.run(&registration, json!({})).await.result();
    assert_eq!(result["program"], json!(program));
    // Written over in place: the copy that was verified is what runs.
    world.program("program", "#!/bin/sh\necho '{\"ran\": \"swapped\"}'\n");
    assert_eq!(world.run(&registration, json!({})).await.result()["ran"], "verified");
}

#[tokio::test]
async fn a_check_finds_what_is_missing_before_work_arrives() {
    let world = World::new();
    world.write("handlers.py", "def handle(p): raise AssertionError('called')");
    world.write("broken.py", "import nothing_like_that");
    let check = async |uri: &str| {
        world.hosts.check(&Registration::new(FACET, uri)).await.map_err(|failure| failure.kind)
    };
    assert_eq!(check("handlers").await, Ok(()));
    assert_eq!(check("broken").await, Err(FailureKind::Error));
    assert_eq!(check("missing").await, Err(FailureKind::NotFound));
    assert_eq!(check("builtin:echo").await, Ok(()));
    assert_eq!(check("builtin:nothing").await, Err(FailureKind::Refused));
    assert_eq!(check("http://10.0.0.1/").await, Err(FailureKind::Refused));
    let mut unnamed = Registration::new(FACET, "handlers");
    unnamed.entrypoint = "other".to_owned();
    assert_eq!(world.hosts.check(&unnamed).await.unwrap_err().kind, FailureKind::NotFound);
}
