use std::os::unix::fs::symlink;

use afl_agents::handler::HandlerFailureKind;
use afl_agents::registration::{Checksum, Registration};
use serde_json::json;

use crate::world::{FACET, World};

/// The answer to a URI that leads somewhere.
async fn told(world: &World, uri: &str, checksum: &str) -> (HandlerFailureKind, String) {
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
                HandlerFailureKind::NotFound
            }
            uri if uri.contains("folder.py") || uri.contains("pipe.py") => HandlerFailureKind::NotFound,
            _ => HandlerFailureKind::Refused,
        };
        assert_eq!(kind, expected, "{uri}: {message}");
    }
    // A link that stays inside is nobody's business.
    world.write("real.py", "def handle(p): return {'ok': True}");
    symlink("real.py", world.path("alias.py")).unwrap();
    assert_eq!(world.run(&Registration::new(FACET, "alias"), json!({})).await.result()["ok"], true);
}

#[tokio::test]
async fn f18_no_form_of_an_address_leads_out_of_the_roots() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.py");
    std::fs::write(&secret, "def handle(p): return {}").unwrap();
    let up = format!("../{}", outside.path().file_name().unwrap().to_str().unwrap());
    let inside = world.path("").display().to_string();
    for uri in [
        format!("file://{inside}{up}/secret.py"),
        format!("file://{inside}%2e%2e/{}/secret.py", &up[3..]),
        format!("file://{inside}..%2f{}/secret.py", &up[3..]),
        format!("file://localhost{}", secret.display()),
        format!("file://host{}", secret.display()),
        format!("file:{}", secret.display()),
        format!("FILE://{}", secret.display()),
        format!("file://{}%00.py", secret.display()),
        format!("exec:{inside}{up}/secret.py"),
        "exec:secret.py".to_owned(),
        up.clone() + "/secret",
        "..secret".to_owned(),
        "a/../secret".to_owned(),
        ".secret".to_owned(),
        "secret.".to_owned(),
        "a\0b".to_owned(),
        r"\\host\secret.py".to_owned(),
        "__import__('os')".to_owned(),
    ] {
        let (kind, message) = told(&world, &uri, "").await;
        assert!(
            matches!(kind, HandlerFailureKind::Refused | HandlerFailureKind::NotFound),
            "{uri}: {message}"
        );
    }
}

/// A link is swapped all the time between a file inside and one outside, while it is called.
#[tokio::test(flavor = "multi_thread")]
async fn f18_a_link_that_is_swapped_during_the_call_never_leads_outside() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.py");
    std::fs::write(&secret, "def handle(p): return {'from': 'outside'}").unwrap();
    world.write("real.py", "def handle(p): return {'from': 'inside'}");
    let (link, next) = (world.path("link.py"), world.path("next"));
    symlink("real.py", &link).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let swapping = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            for target in [secret.as_path(), std::path::Path::new("real.py")] {
                symlink(target, &next).unwrap();
                std::fs::rename(&next, &link).unwrap();
            }
        }
    });
    let (mut inside, mut calls) = (0, 0);
    // The scheduler decides which of them the call meets.
    while calls < 50 || (inside == 0 && calls < 5_000) {
        calls += 1;
        let ran = world.run(&Registration::new(FACET, "link"), json!({})).await;
        match &ran.outcome {
            Ok(result) => {
                assert_eq!(result["from"], "inside");
                inside += 1;
            }
            Err(failure) => {
                assert_eq!(failure.kind, HandlerFailureKind::Refused, "{failure}");
            }
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(inside > 0, "the file inside was never called");
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
        assert_eq!(kind, HandlerFailureKind::Refused);
        assert!(message.contains("register the new checksum if the change is meant"), "{message}");
    }
    assert!(!world.path("program.ran").exists());
}

#[tokio::test]
async fn f18_a_host_runs_the_verified_bytes_of_a_program() {
    let world = World::new();
    let text = "#!/bin/sh\nprintf '{\"ran\": \"verified\", \"program\": \"%s\"}' $AFL_PROGRAM\n";
    let program = world.program("program", text);
    let mut registration = Registration::new(FACET, format!("exec:{}", program.display()));
    registration.checksum = format!("sha256:{}", Checksum::of(text.as_bytes()));
    let result = world.run(&registration, json!({})).await.result();
    assert_eq!(result["program"], json!(program));
    // Written over in place: the verified copy runs.
    world.program("program", "#!/bin/sh\necho '{\"ran\": \"swapped\"}'\n");
    assert_eq!(world.run(&registration, json!({})).await.result()["ran"], "verified");
}

#[tokio::test]
async fn a_check_finds_missing_files_before_work_arrives() {
    let world = World::new();
    world.write("handlers.py", "def handle(p): raise AssertionError('called')");
    world.write("broken.py", "import nothing_like_that");
    let check = async |uri: &str| {
        world.hosts.check(&Registration::new(FACET, uri)).await.map_err(|failure| failure.kind)
    };
    assert_eq!(check("handlers").await, Ok(()));
    assert_eq!(check("broken").await, Err(HandlerFailureKind::Error));
    assert_eq!(check("missing").await, Err(HandlerFailureKind::NotFound));
    assert_eq!(check("builtin:echo").await, Ok(()));
    assert_eq!(check("builtin:nothing").await, Err(HandlerFailureKind::Refused));
    assert_eq!(check("http://10.0.0.1/").await, Err(HandlerFailureKind::Refused));
    let mut unnamed = Registration::new(FACET, "handlers");
    unnamed.entrypoint = "other".to_owned();
    assert_eq!(world.hosts.check(&unnamed).await.unwrap_err().kind, HandlerFailureKind::NotFound);
}
