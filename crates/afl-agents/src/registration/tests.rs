//! The contents that registrations may have, and the choice of one for a facet.

use std::fmt::Write as _;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::{Hosts, HostsConfig};

fn problems(record: serde_json::Value) -> String {
    let registration: Registration = serde_json::from_value(record).unwrap();
    match Hosts::unstarted(HostsConfig::default()).parse(&registration) {
        Ok(handler) => format!("{handler:?}"),
        Err(problems) => problems.iter().fold(String::new(), |mut text, problem| {
            writeln!(text, "{problem}").unwrap();
            text
        }),
    }
}

// covers: SDK-8.5-a
#[test]
fn a_registration_has_the_documented_fields_and_defaults() {
    let minimal = json!({"facet_name": "ns.CountDocuments", "module_uri": "my.handlers"});
    let registration: Registration = serde_json::from_value(minimal).unwrap();
    assert_eq!(registration, Registration::new("ns.CountDocuments", "my.handlers"));
    assert_eq!(
        serde_json::to_value(&registration).unwrap(),
        json!({
            "facet_name": "ns.CountDocuments", "module_uri": "my.handlers", "entrypoint": "handle",
            "version": "1.0.0", "checksum": "", "timeout_ms": 30000, "requirements": [], "metadata": {},
            "created": 0, "updated": 0,
        })
    );
}

#[test]
fn the_form_of_the_uri_decides_the_host() {
    let module = |uri: &str| problems(json!({"facet_name": "a.F", "module_uri": uri}));
    assert_snapshot!(module("my.handlers.cache"), @r#"PythonHandler(Dotted(DottedName("my.handlers.cache")))"#);
    assert_snapshot!(module("file:///opt/my%20handlers/cache.py"), @r#"PythonHandler(File("/opt/my handlers/cache.py"))"#);
    assert_snapshot!(module("exec:/opt/bin/resize"), @r#"ExecHandler("/opt/bin/resize")"#);
    assert_snapshot!(module("builtin:json.pick"), @"BuiltinHandler(JsonPick)");
}

#[test]
fn a_bad_uri_is_reported_with_a_valid_form() {
    let uris = [
        "",
        "my..handlers",
        "../etc",
        "file://host/x.py",
        "file:///opt/x.sh",
        "file:/opt/x.py",
        "exec:resize",
        "exec:/opt/../etc/x",
        "https://",
        "http://me:secret@example.org/",
        "builtin:nothing",
        "ftp://x/y",
        r"\\host\x.py",
    ];
    let texts: Vec<_> =
        uris.iter().map(|uri| problems(json!({"facet_name": "a.F", "module_uri": uri}))).collect();
    assert_snapshot!(texts.concat());
}

#[test]
fn all_errors_are_reported_at_once() {
    let bad = json!({
        "facet_name": "a b", "module_uri": "x y", "entrypoint": "", "checksum": "abc", "timeout_ms": 0,
        "metadata": {"python": 3},
    });
    assert_snapshot!(problems(bad));
    let header =
        json!({"facet_name": "a.F", "module_uri": "my.handlers", "metadata": {"headers": {"a b": "c"}}});
    assert_snapshot!(problems(header), @"metadata.headers must be an object of HTTP headers as texts");
    let of_no_file = json!({
        "facet_name": "a.F", "module_uri": "builtin:echo", "checksum": Checksum::of(b"").to_string(),
    });
    assert_snapshot!(problems(of_no_file), @"checksum is given, but `builtin:echo` names no file to compare it with: leave it empty");
}

#[test]
fn a_checksum_is_read_in_both_spellings() {
    let checksum = Checksum::of(b"x");
    assert_eq!(Checksum::parse(&checksum.to_string()), Some(checksum));
    assert_eq!(Checksum::parse(&format!("sha256:{}", checksum.to_string().to_uppercase())), Some(checksum));
    assert_eq!(Checksum::parse(&"é".repeat(32)), None);
}

fn found(names: &[&str], facet: &str) -> String {
    let registrations: Vec<_> = names.iter().map(|name| Registration::new(*name, "my.handlers")).collect();
    find(&registrations, facet).map_or_else(|error| error.to_string(), |found| found.facet_name.clone())
}

// covers: SDK-3.4-b, SDK-3.4-c, SDK-3.4-d
#[test]
fn t11_the_exact_name_goes_first_then_an_unambiguous_short_one() {
    assert_eq!(found(&["Pay", "a.Pay"], "a.Pay"), "a.Pay");
    assert_eq!(found(&["Pay", "a.Refund"], "a.Pay"), "Pay");
    assert_eq!(found(&["Pay"], "Pay"), "Pay");
    assert_snapshot!(found(&["b.Pay"], "a.Pay"), @"no handler is registered for a.Pay: register one for `a.Pay`");
    assert_snapshot!(found(&["b.Pay"], "Pay"), @"no handler is registered for Pay: register one for `Pay`");
    assert_snapshot!(found(&["Pay", "b.Pay"], "a.Pay"), @"`Pay` is registered, and so is `b.Pay`: it is not clear whose work a.Pay is, so register `a.Pay` itself");
}

// covers: SDK-8.8-b
#[test]
fn topics_are_patterns_of_which_one_must_match() {
    let admitted =
        |patterns: &[&str], facet: &str| Topics::new(patterns.iter().copied()).unwrap().admit(facet);
    let documented = ["osm.geo.*", "validation.*"];
    assert!(admitted(&documented, "osm.geo.cache.Africa"));
    assert!(admitted(&documented, "validation.CheckBounds"));
    assert!(!admitted(&documented, "billing.ProcessPayment"));
    assert!(admitted(&[], "billing.ProcessPayment"));
    assert!(admitted(&["a.F?"], "a.F1") && !admitted(&["a.F?"], "a.F12"));
    assert!(admitted(&["a.F[12]"], "a.F2") && !admitted(&["a.F[!12]"], "a.F2"));
    assert!(!admitted(&["billing.*"], "Billing.Pay"));
    assert_snapshot!(Topics::new(["a.[b"]).unwrap_err(), @"topic `a.[b` is no pattern: unclosed character class; missing ']'");
}

#[test]
fn a_step_goes_before_the_default_timeout_and_never_beyond_one_that_was_chosen() {
    let timeout = |registered: i64, step: Option<u64>| {
        let registration =
            Registration { timeout_ms: registered, ..Registration::new("a.F", "builtin:echo") };
        i64::try_from(registration.timeout_of(step.map(Duration::from_millis)).as_millis()).unwrap()
    };
    let default = DEFAULT_TIMEOUT_MS;
    assert_eq!([timeout(default, None), timeout(5_000, None)], [default, 5_000]);
    assert_eq!([timeout(default, Some(300_000)), timeout(default, Some(10))], [300_000, 10]);
    assert_eq!([timeout(5_000, Some(300_000)), timeout(5_000, Some(10))], [5_000, 10]);
    assert_eq!([timeout(default, Some(0)), timeout(default, Some(u64::MAX))], [1, MAX_TIMEOUT_MS]);
}

#[test]
fn a_registration_says_which_version_and_which_bytes_it_is_as_far_as_it_knows() {
    let words = |version: &str, checksum: &str| {
        let (version, checksum) = (version.to_owned(), checksum.to_owned());
        Registration { version, checksum, ..Registration::new("a.F", "builtin:echo") }.words()
    };
    assert_eq!(words(DEFAULT_VERSION, ""), "");
    assert_eq!(words("2.1", ""), "version 2.1");
    assert_eq!(words("2.1", "ab12"), "version 2.1, sha256 ab12");
}
