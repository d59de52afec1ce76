//! References, identifiers, drafts and the order of properties.

mod values;

use constrain::error::Place;
use constrain::grammar::{Grammar, Node, NodeId, PropertyOrder};
use constrain::schema::{Draft, Options, compile};
use constrain::{Kind, schema};
use serde_json::{Value, json};
use values::Language;

fn any_order() -> Options {
    Options { property_order: PropertyOrder::Any, ..Options::default() }
}

/// Compares with an independent validator, on values that the schemas below tell apart.
fn agrees(schema: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let mut language = Language::new(compile(&schema.to_string(), &any_order()).expect("compiles"));
    let scalars =
        [json!(null), json!(1), json!(2), json!(1.5), json!("s"), json!("long"), json!(true)];
    let mut values = scalars.to_vec();
    values.extend([
        json!([]),
        json!([[]]),
        json!([1, "s"]),
        json!(["s", 1]),
        json!([1]),
        json!(["s"]),
        json!([[1], ["s"]]),
    ]);
    for value in &scalars {
        for key in ["a", "b", "next", "node", "children"] {
            values.push(json!({ key: value }));
            values.push(json!({ key: {key: value} }));
            values.push(json!({ key: [{key: value}, {"data": value}] }));
            values.push(json!({"a": value, key: 1}));
        }
        values.push(json!({"data": value, "children": [{"data": value, "children": []}]}));
        values.push(json!({"data": value, "children": [{"daat": value}]}));
    }
    for value in &values {
        assert_eq!(language.has(value), validator.is_valid(value), "{schema}\non {value}");
    }
}

#[test]
fn references() {
    for schema in [
        json!({"$defs": {"a/b": {"type": "string"}, "c%d e": {"const": 1}}, "anyOf": [
            {"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c%25d%20e"}]}),
        json!({"$defs": {"s": {"$anchor": "x", "type": "string"}}, "$ref": "#x", "maxLength": 1}),
        json!({"$id": "http://a.example/r", "$defs": {
            "s": {"$id": "s", "$defs": {"t": {"type": "string"}}, "$ref": "#/$defs/t"}}, "$ref": "s"}),
        json!({"$id": "http://a.example/r/x", "items": {"$ref": "/y#z"}, "type": "array", "$defs": {
            "s": {"$id": "http://a.example/y", "$defs": {"t": {"$anchor": "z", "type": "integer"}}}}}),
        json!({"properties": {"next": {"$ref": "#"}, "a": {"type": "integer"}}, "additionalProperties": false}),
        json!({"allOf": [{"$ref": "#/$defs/list"}, {"$ref": "#/$defs/short"}], "$defs": {
            "list": {"properties": {"next": {"$ref": "#/$defs/list"}, "a": {"type": "integer"}}},
            "short": {"properties": {"next": {"$ref": "#/$defs/short"}}, "maxProperties": 1}}}),
        json!({"not": {"$ref": "#/$defs/list"}, "$defs": {
            "list": {"properties": {"next": {"$ref": "#/$defs/list"}, "a": {"type": "integer"}}, "type": "object"}}}),
    ] {
        agrees(&schema);
    }
}

#[test]
fn drafts() {
    let draft = |number: u8| format!("http://json-schema.org/draft-0{number}/schema#");
    for schema in [
        json!({"$schema": draft(4), "type": "number", "minimum": 1, "exclusiveMinimum": true}),
        json!({"$schema": draft(4), "const": 1, "type": "integer"}),
        json!({"$schema": draft(4), "id": "http://a.example/", "$ref": "#/definitions/x", "maxLength": 1,
            "definitions": {"x": {"type": "string"}}}),
        json!({"$schema": draft(6), "items": [{"type": "integer"}], "additionalItems": {"type": "string"}}),
        json!({"$schema": draft(7), "definitions": {"x": {"$id": "#y", "type": "string"}}, "$ref": "#y"}),
        json!({"$schema": draft(7), "if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}),
        json!({"$schema": draft(7), "dependencies": {"a": ["b"], "b": {"required": ["a"]}}}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{"type": "integer"}],
            "unevaluatedItems": false}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$id": "http://a.example/s",
            "$recursiveAnchor": true, "$defs": {"tree": {"$id": "tree", "$recursiveAnchor": true,
            "properties": {"children": {"type": "array", "items": {"$recursiveRef": "#"}}}}},
            "$ref": "tree", "unevaluatedProperties": false, "properties": {"data": true}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://a.example/s",
            "$dynamicAnchor": "node", "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node",
            "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}, "data": true}}},
            "$ref": "tree", "unevaluatedProperties": false}),
        // Two ways to one list: in each the dynamic anchor is another schema.
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://a.example/s",
            "anyOf": [{"$ref": "ints"}, {"$ref": "texts"}, {"$ref": "ints"}], "$defs": {
            "ints": {"$id": "ints", "$ref": "list", "$defs": {"x": {"$dynamicAnchor": "node", "type": "integer"}}},
            "texts": {"$id": "texts", "$ref": "list", "$defs": {"x": {"$dynamicAnchor": "node", "type": "string"}}},
            "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#node"}, "$defs": {
            "x": {"$dynamicAnchor": "node", "type": "boolean"}}}}}),
        // Several anchors of a resource, one of them not dynamic inside.
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://a.example/s",
            "$ref": "pair", "$defs": {"x": {"$dynamicAnchor": "one", "type": "integer"},
            "y": {"$dynamicAnchor": "two", "type": "string"}, "z": {"$dynamicAnchor": "fixed", "type": "null"},
            "pair": {"$id": "pair", "type": "object", "properties": {"a": {"$dynamicRef": "#one"},
            "b": {"$dynamicRef": "#two"}, "next": {"$dynamicRef": "#fixed"}}, "$defs": {
            "x": {"$dynamicAnchor": "one"}, "y": {"$dynamicAnchor": "two", "minLength": 2},
            "z": {"$anchor": "fixed", "type": "boolean"}}}}}),
    ] {
        agrees(&schema);
    }
}

#[test]
fn other_documents_are_handed_over() {
    let text = r#"{"$ref": "http://a.example/defs.json#/$defs/short"}"#;
    let error = compile(text, &any_order()).expect_err("nothing is fetched");
    assert_eq!(*error.kind(), Kind::BadRef);
    let mut options = any_order();
    let defs = r##"{"$defs": {"short": {"allOf": [{"$ref": "#/$defs/text"}, {"maxLength": 2}]},
        "text": {"type": "string"}}}"##;
    options.documents.insert("http://a.example/defs.json".to_owned(), defs.to_owned());
    let mut language = Language::new(compile(text, &options).expect("compiles"));
    assert!(language.has(&json!("ab")) && !language.has(&json!("abc")) && !language.has(&json!(1)));
}

#[test]
fn the_draft_and_the_formats_can_be_overridden() {
    let text = r#"{"const": 1, "format": "date"}"#;
    let has = |options: &Options, value: Value| {
        Language::new(compile(text, options).expect("compiles")).has(&value)
    };
    let old = Options { draft: Some(Draft::Draft4), ..any_order() };
    assert!(has(&old, json!(2)) && !has(&any_order(), json!(2)));
    assert!(!has(&old, json!("no date")));
    assert!(has(&Options { assert_formats: false, ..old }, json!("no date")));
}

/// The names of the first object that the grammar writes, in order.
fn names(grammar: &Grammar) -> Vec<String> {
    let mut todo: Vec<NodeId> = vec![grammar.root()];
    while let Some(id) = todo.pop() {
        match grammar.node(id) {
            Node::Object(spec) => return spec.properties.iter().map(|p| p.name.clone()).collect(),
            Node::Seq(parts) | Node::Alt(parts) => todo.extend(parts.iter().rev()),
            Node::Rule(target) | Node::Within { item: target, .. } => todo.push(*target),
            _ => {}
        }
    }
    Vec::new()
}

#[test]
fn properties_come_in_the_order_of_the_text() {
    let order = |text: &str, options: &Options| names(&compile(text, options).expect("compiles"));
    let plain = Options::default();
    let text = r#"{"properties": {"z": {}, "a": {}, "analysis": {}}, "required": ["q", "a"]}"#;
    assert_eq!(order(text, &plain), ["analysis", "z", "a", "q"]);
    let named = Options { reasoning_field: Some("a".to_owned()), ..Options::default() };
    assert_eq!(order(text, &named), ["a", "z", "analysis", "q"]);
    let text = r#"{"allOf": [{"properties": {"base": {}}}], "properties": {"own": {}}}"#;
    assert_eq!(order(text, &plain), ["base", "own"]);
    let text = r#"{"properties": {"own": {}}, "allOf": [{"properties": {"base": {}}}]}"#;
    assert_eq!(order(text, &plain), ["own", "base"]);
    let text = r#"{"type": "object", "properties": {"own": {}}, "additionalProperties": false}"#;
    let added = Options { add_reasoning: true, ..Options::default() };
    assert_eq!(order(text, &added), ["reasoning", "own"]);
    let mut language = Language::new(compile(text, &added).expect("compiles"));
    assert!(language.has(&json!({"reasoning": "so", "own": 1})));
    assert!(!language.has(&json!({"own": 1})) && !language.has(&json!({"reasoning": 1})));
    let error = schema::compile(r#"{"type": "array"}"#, &added).expect_err("no object");
    assert_eq!(*error.kind(), Kind::BadArgument);
}

#[test]
fn malformed_keywords_are_errors_at_their_place() {
    for (schema, pointer) in [
        (json!({"properties": 1}), "/properties"),
        (json!({"patternProperties": []}), "/patternProperties"),
        (json!({"dependentRequired": 1}), "/dependentRequired"),
        (json!({"dependentRequired": {"a": 1}}), "/dependentRequired/a"),
        (json!({"dependentSchemas": [1]}), "/dependentSchemas"),
        (json!({"required": 1}), "/required"),
        (json!({"required": [1]}), "/required/0"),
        (json!({"enum": 1}), "/enum"),
        (json!({"type": "x"}), "/type"),
        (json!({"type": 1}), "/type"),
        (json!({"type": []}), "/type"),
        (json!({"minLength": -1}), "/minLength"),
        (json!({"maxLength": "a"}), "/maxLength"),
        (json!({"minItems": 0.5}), "/minItems"),
        (json!({"minimum": "1"}), "/minimum"),
        (json!({"multipleOf": 0}), "/multipleOf"),
        (json!({"multipleOf": -1}), "/multipleOf"),
        (json!({"items": 1}), "/items"),
        (json!({"prefixItems": {}}), "/prefixItems"),
        (json!({"prefixItems": [1]}), "/prefixItems/0"),
        (json!({"allOf": {}}), "/allOf"),
        (json!({"anyOf": 1}), "/anyOf"),
        (json!({"not": 1}), "/not"),
        (json!({"if": 1}), "/if"),
        (json!({"pattern": 1}), "/pattern"),
        (json!({"uniqueItems": 1}), "/uniqueItems"),
        (json!({"$ref": 1}), "/$ref"),
        (json!({"additionalProperties": 1}), "/additionalProperties"),
        (json!({"propertyNames": []}), "/propertyNames"),
        (json!({"contains": "a"}), "/contains"),
        (json!({"contains": true, "minContains": -1}), "/minContains"),
    ] {
        let error = compile(&schema.to_string(), &any_order()).expect_err("it is malformed");
        let found = match error.place() {
            Some(Place::Pointer { pointer, .. }) => pointer.as_str(),
            _ => "",
        };
        assert_eq!((error.kind(), found), (&Kind::Syntax, pointer), "{schema}: {error}");
    }
}
