//! Formats against tables, the official test suite, and an independent validator.

use super::*;
use serde_json::{Value, json};

/// The expressions of all formats, in one arena.
struct Formats {
    exprs: Exprs,
    fuel: Fuel,
}

impl Formats {
    fn new() -> Self {
        Self { exprs: Exprs::new(), fuel: Fuel::new(1 << 40) }
    }

    fn matches(&mut self, format: Format, text: &str) -> bool {
        let expr = format.expr(&mut self.exprs);
        self.exprs.matches(expr, text, &mut self.fuel).unwrap()
    }
}

fn judge(format: Format) -> jsonschema::Validator {
    let schema =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "format": format.name()});
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn check(format: Format, accepted: &[&str], rejected: &[&str]) {
    let mut formats = Formats::new();
    let judge = judge(format);
    for text in accepted {
        assert!(formats.matches(format, text), "{} must accept {text:?}", format.name());
        assert!(judge.is_valid(&json!(text)), "the validator rejects {text:?}");
    }
    for text in rejected {
        assert!(!formats.matches(format, text), "{} must reject {text:?}", format.name());
    }
}

#[test]
fn dates_are_days_of_the_calendar() {
    check(
        Format::Date,
        &["2024-02-29", "2000-02-29", "0000-02-29", "1999-12-31", "0400-02-29", "2023-02-28"],
        &[
            "2023-02-29",
            "1900-02-29",
            "2100-02-29",
            "2024-02-30",
            "2024-04-31",
            "2024-00-01",
            "2024-1-01",
            "2024-13-01",
            "2024-01-32",
            "02024-01-01",
            "2024-01-01 ",
            "٢٠٢٤-01-01",
            "",
        ],
    );
}

#[test]
fn every_day_of_four_centuries_is_judged_right() {
    let mut formats = Formats::new();
    let date = Format::Date.expr(&mut formats.exprs);
    for year in (1896..2107).chain([0, 4, 100, 400, 9999]) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (month, days) in
            (1..).zip([31, 28 + i32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
        {
            for day in [0, 1, 9, 10, 19, 20, 28, 29, 30, 31, 32] {
                let text = format!("{year:04}-{month:02}-{day:02}");
                let found = formats.exprs.matches(date, &text, &mut formats.fuel).unwrap();
                assert_eq!(found, (1..=days).contains(&day), "{text}");
            }
        }
    }
}

#[test]
fn times_have_offsets_and_leap_seconds() {
    check(
        Format::Time,
        &[
            "00:00:00Z",
            "23:59:59.123z",
            "12:00:00+23:59",
            "12:00:00-00:00",
            "23:59:60Z",
            "23:59:60.5z",
            "01:29:60+01:30",
            "23:29:60+23:30",
            "15:59:60-08:00",
            "00:29:60-23:30",
            "23:59:60+00:00",
            "23:59:60-00:00",
            "05:44:60+05:45",
        ],
        &[
            "24:00:00Z",
            "12:60:00Z",
            "12:00:60Z",
            "12:00:00",
            "12:00Z",
            "12:00:00.Z",
            "12:00:00+24:00",
            "22:59:60Z",
            "23:59:61Z",
            "23:59:60+01:00",
            "00:59:60-01:00",
            "12:00:00,5Z",
            "12:00:00+0100",
        ],
    );
    check(
        Format::DateTime,
        &["1998-12-31T23:59:60Z", "2024-02-29t00:00:00.000z", "2024-01-01T10:00:00+02:00"],
        &["2023-02-29T00:00:00Z", "2024-01-01 10:00:00Z", "2024-01-01T10:00:00", "2024-01-01"],
    );
    check(
        Format::Duration,
        &["P1D", "P4DT12H30M5S", "PT0S", "P1Y2M3D", "P3W", "PT1M", "P1Y", "PT1H2M", "P1Y1M"],
        &[
            "P", "PT", "P1", "P1DT", "P1Y1D", "PT1H1S", "P1WT1H", "P1D1Y", "p1D", "PT1D", "P1.5D",
            "P-1D", "1D",
        ],
    );
}

#[test]
fn addresses_and_names() {
    check(
        Format::Ipv4,
        &["0.0.0.0", "255.255.255.255", "192.168.1.10"],
        &["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "0x1.2.3.4"],
    );
    check(
        Format::Ipv6,
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "1::1.2.3.4",
            "fe80::aBcD",
            "1:2:3::6:7:8",
        ],
        &[
            ":",
            ":::",
            "1::2::3",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "12345::",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::1.2.3",
            "::1.2.3.256",
            "fe80::1%eth0",
            "::g",
            "[::1]",
            ":1:2:3:4:5:6:7",
            "1.2.3.4",
        ],
    );
    check(
        Format::Hostname,
        &[
            "a",
            "a-b.c",
            "1host",
            "a--b.com",
            "xn--p1ai",
            &"a".repeat(63),
            &format!("{}a", "a.".repeat(14)),
            "ab-c",
            "abc-d",
            "ab-c-d",
            "a1-2",
        ],
        &[
            "",
            ".",
            "a.",
            ".a",
            "-a",
            "a-",
            "a_b",
            &"a".repeat(64),
            &"a.".repeat(127),
            &"a.b".repeat(90),
            "ab--c",
            "ab--c-d",
            "xn--X",
            "a-b-",
            "é",
            "a..b",
            "a\n",
        ],
    );
    check(
        Format::Email,
        &[
            "a@b",
            "joe.bloggs@example.com",
            "\"joe bloggs\"@example.com",
            "\"a\\\"b@c\"@d.e",
            "~!#$%&'*+-/=?^_`{|}@x",
            "a@[127.0.0.1]",
            "a@[IPv6:::1]",
            "a@[IPv6:1:2:3:4:5:6:7:8]",
            &format!("{}@b", "a".repeat(64)),
        ],
        &[
            "a",
            "@b",
            "a@",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a b@c",
            "a@b@c",
            "a@[127.0.0.300]",
            "a@-b",
            "é@b",
            "a@é",
            "\"a\"b@c",
            "\"\n\"@c",
            "a <b@c>",
            &format!("{}@b", "a".repeat(65)),
        ],
    );
}

#[test]
fn a_labels_are_known_to_the_validator() {
    let judge = judge(Format::Hostname);
    for label in host::A_LABELS.split(' ') {
        assert!(judge.is_valid(&json!(label)), "{label}");
    }
}

#[test]
fn international_names() {
    let mut formats = Formats::new();
    for (format, text, expected) in [
        (Format::IdnHostname, "실례.테스트", true),
        (Format::IdnHostname, "bücher.example", true),
        (Format::IdnHostname, "l·l", true),
        (Format::IdnHostname, "α͵β", true),
        (Format::IdnHostname, "א׳ב", true),
        (Format::IdnHostname, "ب٠ب", true),
        (Format::IdnHostname, "क\u{94d}\u{200d}ष", true),
        (Format::IdnHostname, "・ぁ", true),
        (Format::IdnHostname, "हिन्दी.भारत", true),
        (Format::IdnHostname, "แม่.ไทย", true),
        (Format::IdnHostname, "می‌خواهم.ایران", true),
        (Format::IdnHostname, "пример.xn--p1ai", true),
        (Format::IdnEmail, "a@แม่.ไทย", false),
        (Format::IdnHostname, "a.b。c", true),
        (Format::IdnHostname, "・", false),
        (Format::IdnHostname, "a·l", false),
        (Format::IdnHostname, "0a.א", false),
        (Format::IdnHostname, "aא", false),
        (Format::IdnHostname, "ب٠۰", false),
        (Format::IdnHostname, "\u{302e}실", false),
        (Format::IdnHostname, "-é", false),
        (Format::IdnHostname, "É", false),
        (Format::IdnHostname, "e\u{301}", false),
        (Format::IdnEmail, "실례@실례.테스트", true),
        (Format::IdnEmail, "\"δοκιμή\"@example.com", true),
        (Format::IdnEmail, "a@l·l", true),
        (Format::IdnEmail, "é@", false),
    ] {
        assert_eq!(formats.matches(format, text), expected, "{} on {text}", format.name());
    }
}

#[test]
fn identifiers_of_resources() {
    let both = [
        "http://user:pw@example.com:8080/a/b;c?q=1&r=/?#f?/",
        "urn:isbn:0451450523",
        "mailto:a@b",
        "file:///etc",
        "http://[::1]:80/",
        "http://[v1.a:b]",
        "a:",
        "a:?",
        "http://",
        "http://a%20b/%C3%A9",
        "http://1.2.3.4:",
        "ldap://[2001:db8::7]/c=GB?objectClass?one",
        "x:/a//b",
    ];
    check(
        Format::Uri,
        &both,
        &[
            "",
            "//a",
            "/a",
            "a",
            "1a:",
            "http://a b",
            "http://é",
            "http://a/%2",
            "http://[::1",
            "http://[:::1]",
            "http://a:b",
            "http://a/[",
            "a:#b#c",
            "http://a@b@c",
            "a:\\",
            "http://a/{x}",
            "http://[1.2.3.4]",
        ],
    );
    check(
        Format::UriReference,
        &[
            &both[..],
            &["", "/", "//a/b", "a/b:c", "?", "#", "../x", "./a:b", "a@b", "//", "/a//b", "%41"],
        ]
        .concat(),
        &["a b", "1a:b", ":a", "//a:b", "é", "#a#b", "\\", "^"],
    );
    check(
        Format::Iri,
        &[&both[..], &["http://é.com/ü?π#ß", "http://[::1]/é", "x:\u{a0}", "x:?\u{e000}"]].concat(),
        &["", "/é", "http://a b", "x:\u{e000}", "x:#\u{e000}", "x:\u{80}", "x:\u{fffe}"],
    );
    check(Format::IriReference, &["é", "//é", "", "#é", "a/é:b"], &["é:b", "a b", "\\é"]);
    check(
        Format::UriTemplate,
        &["", "a/{b}", "{?x,y*}", "{+a:30}", "{/a.b,c%20}", "é{x}", "%41", "{a}{b}", "x?y=[z]"],
        &[
            "{",
            "}",
            "{}",
            "{a",
            "{a}}",
            "{a,}",
            "{a:0}",
            "{a:12345}",
            "{a b}",
            "%4",
            "a b",
            "<",
            "{a..b}",
            "{-a}",
            "{é}",
        ],
    );
}

#[test]
fn identifiers_and_pointers() {
    check(
        Format::Uuid,
        &["2EB8AA08-aa98-11ea-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"],
        &[
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa73b441d16380",
            "",
            "g0000000-0000-0000-0000-000000000000",
        ],
    );
    check(
        Format::JsonPointer,
        &["", "/", "/a~0b/~1", "//", "/\n", "/é\u{10ffff}"],
        &["a", "/~", "/~2", "#/a", "/a~"],
    );
    check(
        Format::RelativeJsonPointer,
        &["0", "1/a", "10#", "0#", "120/foo/~0"],
        &["", "/a", "-1", "01/a", "0##", "+1", "1a", "0/~"],
    );
}

#[test]
fn regexes_as_texts() {
    check(
        Format::Regex,
        &[
            "",
            "a",
            "^a|b$",
            "([abc])+\\s+$",
            "[a-z-]",
            "[^-\\d]",
            "(?:a{2,3}?)*",
            "((((a))))",
            "\\u0041",
            "a||b",
            "(?=a)(?<!b)c",
            "[0-9A-Fa-f]{8}",
            "\\/",
            "é\n",
            "[]",
            "a{10,}",
        ],
        &[
            "(", "a)", "[a", "*", "a**", "a{3,2}", "[z-a]", "\\", "{1}", "\\z", "(?P<a>b)",
            "(?=a)*", "^*", "a{", "]",
        ],
    );
}

/// Draws strings of each format at random; all of them must please the validator.
#[test]
fn what_a_format_generates_is_valid() {
    for format in Format::all() {
        let mut formats = Formats::new();
        let expr = format.expr(&mut formats.exprs);
        let judge = judge(format);
        let mut seed = 7_u64;
        let mut below = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..300 {
            let mut state = expr;
            let mut text = String::new();
            while !(formats.exprs.nullable(state) && (text.len() > 60 || below(8) == 0))
                && text.len() < 700
            {
                let runs = formats.exprs.transitions(state, &mut formats.fuel).unwrap();
                if runs.is_empty() {
                    break;
                }
                let run = runs[below(runs.len())];
                let code = run.first + below((run.last - run.first + 1) as usize) as u32;
                text.extend(char::from_u32(code));
                state = run.target;
            }
            if formats.exprs.nullable(state) {
                assert!(judge.is_valid(&json!(text)), "{} of {text:?}", format.name());
                assert!(formats.exprs.matches(expr, &text, &mut formats.fuel).unwrap());
            }
        }
    }
}

/// Whether the suite accepts a string that a narrowing leaves out: A-labels, names of mixed writing
/// systems or not in composed form, long ones, `--` in places 3 and 4.
fn is_narrowed(format: Format, text: &str) -> bool {
    let more = ["ab--cd.example", "user@cafe\u{301}.com"];
    let host = matches!(format, Format::Hostname | Format::IdnHostname | Format::IdnEmail);
    let a_label = text.split('.').any(|label| label.starts_with("xn--"));
    host && (a_label || text.chars().count() > 50 || more.contains(&text))
}

#[test]
fn the_official_suite_agrees() {
    let Some(root) = crate::regex::tests::official_suite() else { return };
    let mut formats = Formats::new();
    let (mut judged, mut narrowed, mut wrong) = (0, Vec::new(), Vec::new());
    for draft in ["draft4", "draft7", "draft2020-12"] {
        for format in Format::all() {
            let path = root.join(draft).join(format!("optional/format/{}.json", format.name()));
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let groups: Value = serde_json::from_str(&text).unwrap();
            let tests = groups
                .as_array()
                .unwrap()
                .iter()
                .filter(|group| group["schema"]["format"] == format.name());
            for test in tests.flat_map(|group| group["tests"].as_array().unwrap()) {
                let Some(text) = test["data"].as_str() else { continue };
                let found = formats.matches(format, text);
                judged += 1;
                if found == test["valid"].as_bool().unwrap() {
                    continue;
                }
                let line = format!("{draft} {}: {} {text:?}", format.name(), test["description"]);
                if !found && is_narrowed(format, text) {
                    narrowed.push(line);
                } else {
                    wrong.push(line);
                }
            }
        }
    }
    println!("{judged} judged, {} narrowed", narrowed.len());
    assert!(judged > 500, "{judged}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
