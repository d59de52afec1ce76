//! Schemas made systematically: each keyword alone, and the pairs that meet in one value.

use super::texts::World;
use serde_json::{Map, Value, json};

/// Strings with escapes.
const STRINGS: World = World { outside: "\"", inside: "ab061\u{e9}", escapes: "u\"n" };
/// Numbers in all spellings.
const NUMBERS: World = World { outside: "0125-.e+", inside: "", escapes: "" };
/// Numbers without exponents, which are written in fewer ways where there are bounds.
const PLAIN: World = World { outside: "01245-.", inside: "", escapes: "" };
/// Arrays of small values.
const ARRAYS: World = World { outside: "[],12\"", inside: "a", escapes: "" };
/// Objects of small values with short keys.
const OBJECTS: World = World { outside: "{}\":,1", inside: "ab", escapes: "" };
/// Keys in two spellings.
const ESCAPED: World = World { outside: "{}\":,1", inside: "a061", escapes: "u" };
/// A bit of everything.
const MIXED: World = World { outside: "{}\":,[]12null", inside: "a", escapes: "" };

/// A schema and the world in which it is looked at.
pub struct Case {
    pub schema: Value,
    pub world: World,
}

type Fragments = Vec<Value>;

fn strings() -> Fragments {
    vec![
        json!({"minLength": 1}),
        json!({"maxLength": 1}),
        json!({"pattern": "^a"}),
        json!({"pattern": "[b\u{e9}]$"}),
        json!({"pattern": "^(?!.*ab)"}),
        json!({"enum": ["a", "ab", "\u{e9}", "\u{0}", "a\"\n"]}),
        json!({"const": "a"}),
        json!({"not": {"const": "ab"}}),
        json!({"not": {"pattern": "a.$"}}),
    ]
}

fn numbers() -> Fragments {
    vec![
        json!({"minimum": 1}),
        json!({"maximum": 2.5}),
        json!({"exclusiveMinimum": 0}),
        json!({"exclusiveMaximum": 2}),
        json!({"minimum": -0.5}),
        json!({"multipleOf": 2}),
        json!({"multipleOf": 0.5}),
        json!({"enum": [0, 1, 2.5, -10]}),
        json!({"not": {"minimum": 1}}),
        json!({"not": {"multipleOf": 5}}),
    ]
}

fn arrays() -> Fragments {
    vec![
        json!({"items": {"type": "integer"}}),
        json!({"prefixItems": [{"const": 1}]}),
        json!({"prefixItems": [{"type": "string"}, {"type": "array"}]}),
        json!({"items": false}),
        json!({"minItems": 1}),
        json!({"minItems": 2}),
        json!({"maxItems": 1}),
        json!({"maxItems": 2}),
        json!({"uniqueItems": true}),
        json!({"contains": {"const": 1}}),
        json!({"contains": {"type": "integer"}, "maxContains": 1}),
        json!({"contains": {"type": "string"}, "minContains": 2}),
        json!({"unevaluatedItems": false}),
        json!({"not": {"items": {"type": "integer"}}}),
    ]
}

fn objects() -> Fragments {
    vec![
        json!({"properties": {"a": {"const": 1}}}),
        json!({"properties": {"b": {"type": "string"}, "a": true}}),
        json!({"required": ["a"]}),
        json!({"required": ["b", "a"]}),
        json!({"additionalProperties": false}),
        json!({"additionalProperties": {"const": 1}}),
        json!({"patternProperties": {"^a": {"type": "integer"}}}),
        json!({"patternProperties": {"b$": {"type": "string"}}}),
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"minProperties": 1}),
        json!({"minProperties": 2}),
        json!({"maxProperties": 1}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"dependentSchemas": {"a": {"required": ["b"], "maxProperties": 2}}}),
        json!({"unevaluatedProperties": false}),
        json!({"not": {"required": ["a"]}}),
    ]
}

fn mixed() -> Fragments {
    vec![
        json!({"type": "array"}),
        json!({"type": ["object", "integer"]}),
        json!({"const": [1]}),
        json!({"enum": [1, "a", {"a": 1}, null]}),
        json!({"minItems": 1, "minProperties": 1}),
        json!({"properties": {"a": {"type": "null"}}, "items": {"type": "integer"}}),
        json!({"minimum": 2}),
    ]
}

/// Schemas that are no pair of keywords.
fn alone() -> Vec<Case> {
    let mut found = Vec::new();
    let mut add = |world, schema| found.push(Case { schema, world });
    for schema in [json!(true), json!({}), json!({"not": {}}), json!(false)] {
        add(MIXED, schema);
    }
    for name in ["null", "boolean", "integer", "number", "string", "array", "object"] {
        add(MIXED, json!({"type": name}));
        add(MIXED, json!({"not": {"type": name}}));
    }
    add(NUMBERS, json!({"type": "number"}));
    add(NUMBERS, json!({"type": "integer"}));
    add(NUMBERS, json!({"not": {"type": "integer"}}));
    add(ESCAPED, json!({}));
    for keyword in objects() {
        add(ESCAPED, keyword);
    }
    let draft7 = "http://json-schema.org/draft-07/schema#";
    let tuple =
        json!({"$schema": draft7, "items": [{"const": 1}], "additionalItems": {"type": "string"}});
    add(ARRAYS, tuple);
    add(
        OBJECTS,
        json!({"$schema": draft7, "dependencies": {"a": ["b"], "b": {"maxProperties": 2}}}),
    );
    let draft4 = "http://json-schema.org/draft-04/schema#";
    add(PLAIN, json!({"$schema": draft4, "minimum": 1, "exclusiveMinimum": true, "maximum": 5}));
    let draft2019 = "https://json-schema.org/draft/2019-09/schema";
    add(ARRAYS, json!({"$schema": draft2019, "items": [{"const": 1}], "unevaluatedItems": false}));
    add(
        MIXED,
        json!({"$schema": draft2019, "$recursiveAnchor": true, "items": {"$recursiveRef": "#"}, "minimum": 2}),
    );
    add(ARRAYS, json!({"type": "array", "items": {"$ref": "#"}}));
    add(ARRAYS, json!({"type": ["array", "integer"], "items": {"$ref": "#"}, "maxItems": 2}));
    add(
        OBJECTS,
        json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false, "type": "object"}),
    );
    add(
        OBJECTS,
        json!({"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"const": 1}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/x"}}]}}}),
    );
    add(
        MIXED,
        json!({"$dynamicAnchor": "n", "type": ["array", "null"], "items": {"$dynamicRef": "#n"}}),
    );
    add(
        MIXED,
        json!({"$id": "http://a.example/", "$ref": "b", "$defs": {"b": {"$id": "b", "$anchor": "c", "items": {"$ref": "#c"}, "type": ["array", "integer"]}}}),
    );
    add(ARRAYS, json!({"items": {"uniqueItems": true}, "uniqueItems": true, "type": "array"}));
    add(
        ARRAYS,
        json!({"prefixItems": [{"$ref": "#/$defs/i"}, {"$ref": "#/$defs/i"}], "$defs": {"i": {"type": "integer"}}, "items": {"type": "string"}}),
    );
    found
}

/// The keywords of both in one schema; with `allOf` where both say one.
fn merged(one: &Value, two: &Value) -> Value {
    let (Value::Object(a), Value::Object(b)) = (one, two) else {
        return json!({"allOf": [one, two]});
    };
    if a.keys().any(|key| b.contains_key(key)) {
        return json!({"allOf": [one, two]});
    }
    let both: Map<String, Value> = a.iter().chain(b).map(|(k, v)| (k.clone(), v.clone())).collect();
    both.into()
}

/// Each fragment, and each pair.
fn pairs(fragments: &[Value]) -> impl Iterator<Item = (&Value, Option<&Value>)> {
    let alone = fragments.iter().map(|one| (one, None));
    let pairs = fragments.iter().enumerate();
    let pairs =
        pairs.flat_map(|(i, one)| fragments[i + 1..].iter().map(move |two| (one, Some(two))));
    alone.chain(pairs)
}

/// All of them, in an order that spreads their kinds.
pub fn cases() -> Vec<Case> {
    let mut found = alone();
    let families =
        [(strings(), STRINGS), (numbers(), PLAIN), (arrays(), ARRAYS), (objects(), OBJECTS)];
    for (fragments, world) in &families {
        for (one, two) in pairs(fragments) {
            let schema = two.map_or_else(|| one.clone(), |two| merged(one, two));
            found.push(Case { schema, world: *world });
        }
    }
    for (fragment, i) in numbers().into_iter().zip(0..) {
        let schema =
            if i % 2 == 0 { merged(&fragment, &json!({"type": "integer"})) } else { fragment };
        found.push(Case { schema, world: NUMBERS });
    }
    // What combines schemas, over pairs of those that say something about several types.
    for (i, (one, two)) in pairs(&mixed()).filter_map(|(a, b)| Some((a, b?))).enumerate() {
        let combined = [
            json!({"anyOf": [one, two]}),
            json!({"oneOf": [one, two]}),
            json!({"allOf": [one, {"not": two}]}),
            json!({"not": {"anyOf": [one, two]}}),
            json!({"if": one, "then": two}),
            json!({"if": one, "then": two, "else": {"maxItems": 1}}),
        ];
        // Each pair in three of the ways.
        for (_, schema) in combined.into_iter().enumerate().filter(|(way, _)| (i + way) % 2 == 0) {
            found.push(Case { schema, world: MIXED });
        }
    }
    for (fragments, world) in [(arrays(), ARRAYS), (objects(), OBJECTS)] {
        for (i, (one, two)) in pairs(&fragments).filter_map(|(a, b)| Some((a, b?))).enumerate() {
            let schema = match i % 7 {
                1 => json!({"anyOf": [one, two]}),
                3 => json!({"oneOf": [one, two]}),
                5 => json!({"allOf": [one, {"not": two}]}),
                6 => json!({"if": one, "then": two}),
                _ => continue,
            };
            found.push(Case { schema, world });
        }
    }
    found
}
