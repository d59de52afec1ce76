//! Random schemas and patterns from a stream of choices.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

/// Deepest nesting of subschemas.
const DEPTH: u32 = 3;

const KEYS: &[&str] = &["a", "b", "ab", "id", "é", "a\"b", "reasoning"];

/// A schema in which the keywords interact.
pub fn schema(choices: &mut Unstructured<'_>) -> Result<Value> {
    let mut root = subschema(choices, DEPTH)?;
    if let Value::Object(root) = &mut root {
        root.insert("$defs".into(), json!({"d": subschema(choices, 1)?}));
    }
    Ok(root)
}

fn subschema(choices: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    let last = if depth == 0 { 6 } else { 15 };
    Ok(match choices.int_in_range(0..=last)? {
        0 => json!(choices.ratio(9, 10)?),
        1 => {
            let types = ["string", "integer", "number", "boolean", "null", "object", "array"];
            json!({"type": choices.choose(&types)?})
        }
        2 => string(choices)?,
        3 => number(choices)?,
        4 => json!({"enum": scalars(choices)?}),
        5 => json!({"const": scalar(choices)?}),
        6 => json!({"$ref": "#/$defs/d"}),
        7 | 8 => array(choices, depth - 1)?,
        9..=11 => object(choices, depth - 1)?,
        12 => json!({"anyOf": several(choices, depth - 1)?}),
        13 => json!({"oneOf": several(choices, depth - 1)?}),
        14 => json!({"allOf": several(choices, depth - 1)?}),
        _ => json!({
            "if": subschema(choices, depth - 1)?,
            "then": subschema(choices, depth - 1)?,
            "else": subschema(choices, depth - 1)?,
            "not": subschema(choices, 0)?,
        }),
    })
}

fn several(choices: &mut Unstructured<'_>, depth: u32) -> Result<Vec<Value>> {
    (0..choices.int_in_range(1..=3)?).map(|_| subschema(choices, depth)).collect()
}

/// Adds a keyword with a small number, sometimes.
fn maybe(
    map: &mut Map<String, Value>,
    choices: &mut Unstructured<'_>,
    key: &str,
    last: i64,
) -> Result<()> {
    if choices.ratio(1, 3)? {
        map.insert(key.into(), json!(choices.int_in_range(0..=last)?));
    }
    Ok(())
}

fn string(choices: &mut Unstructured<'_>) -> Result<Value> {
    let mut map = Map::from_iter([("type".to_owned(), json!("string"))]);
    maybe(&mut map, choices, "minLength", 3)?;
    maybe(&mut map, choices, "maxLength", 6)?;
    if choices.ratio(1, 2)? {
        map.insert("pattern".into(), json!(pattern(choices)?));
    }
    Ok(map.into())
}

fn number(choices: &mut Unstructured<'_>) -> Result<Value> {
    let kind = *choices.choose(&["integer", "number"])?;
    let mut map = Map::from_iter([("type".to_owned(), json!(kind))]);
    maybe(&mut map, choices, "minimum", 20)?;
    maybe(&mut map, choices, "exclusiveMaximum", 90)?;
    if choices.ratio(1, 4)? {
        map.insert("multipleOf".into(), json!(choices.int_in_range(1..=7)?));
    }
    Ok(map.into())
}

fn scalar(choices: &mut Unstructured<'_>) -> Result<Value> {
    let values = [
        json!("a"),
        json!("ab"),
        json!("é\""),
        json!(1),
        json!(-20),
        json!(1.5),
        json!(null),
        json!(true),
    ];
    choices.choose(&values).cloned()
}

fn scalars(choices: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    let mut found: Vec<Value> = Vec::new();
    for _ in 0..choices.int_in_range(1..=4)? {
        let value = scalar(choices)?;
        if !found.contains(&value) {
            found.push(value);
        }
    }
    Ok(found)
}

fn array(choices: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    let mut map = Map::from_iter([("type".to_owned(), json!("array"))]);
    map.insert("items".into(), subschema(choices, depth)?);
    if choices.ratio(1, 3)? {
        map.insert("prefixItems".into(), json!(several(choices, depth)?));
    }
    maybe(&mut map, choices, "minItems", 2)?;
    maybe(&mut map, choices, "maxItems", 4)?;
    if choices.ratio(1, 4)? {
        map.insert("uniqueItems".into(), json!(true));
    }
    if choices.ratio(1, 4)? {
        map.insert("contains".into(), subschema(choices, 0)?);
        maybe(&mut map, choices, "maxContains", 2)?;
    }
    Ok(map.into())
}

fn object(choices: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    let mut map = Map::from_iter([("type".to_owned(), json!("object"))]);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for _ in 0..choices.int_in_range(0..=4)? {
        let key = *choices.choose(KEYS)?;
        properties.insert(key.into(), subschema(choices, depth)?);
        if choices.ratio(1, 2)? && !required.contains(&key) {
            required.push(key);
        }
    }
    map.insert("properties".into(), properties.into());
    map.insert("required".into(), json!(required));
    match choices.int_in_range(0..=2)? {
        0 => drop(map.insert("additionalProperties".into(), json!(false))),
        1 => drop(map.insert("additionalProperties".into(), subschema(choices, depth)?)),
        _ => {}
    }
    if choices.ratio(1, 4)? {
        let value = subschema(choices, depth)?;
        map.insert("patternProperties".into(), json!({pattern(choices)?: value}));
    }
    if choices.ratio(1, 5)? {
        map.insert("dependentRequired".into(), json!({"a": ["b"]}));
    }
    maybe(&mut map, choices, "minProperties", 3)?;
    maybe(&mut map, choices, "maxProperties", 5)?;
    Ok(map.into())
}

/// A pattern that several engines read alike.
pub fn pattern(choices: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    if choices.ratio(1, 2)? {
        text.push('^');
    }
    for _ in 0..choices.int_in_range(1..=4)? {
        let atoms =
            ["a", "b", "[a-c]", "[^a]", "[0-9]", "(ab|b)", "(?:a|0)", "[-_.]", "B", "é", "."];
        let times = ["", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"];
        text.push_str(choices.choose(&atoms)?);
        text.push_str(choices.choose(&times)?);
    }
    if choices.ratio(1, 2)? {
        text.push('$');
    }
    Ok(text)
}
