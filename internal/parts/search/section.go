package search

import "mcpx/config"

// Section has the key search.
var Section = config.NewSection(config.AtTop, Settings{}, func(s *Settings) []config.Field {
	e := &s.Embeddings
	embeddings := config.Object([]config.Field{
		{Name: "url", Kind: config.AddressOf(&e.Address), Doc: "The endpoint, with its path: https://api.example.com/v1/embeddings. References are expanded."},
		{Name: "model", Kind: config.Text(&e.Model, config.NonEmpty), Doc: "The model, as the endpoint names it."},
		{Name: "headers", Kind: config.Headers(&e.Headers), Doc: `HTTP headers of the requests: {"Authorization": "Bearer ${API_KEY}"}.`},
	})
	return []config.Field{{
		Name: "search",
		Kind: config.Object([]config.Field{{
			Name: "embeddings", Kind: config.Required(embeddings, "url", "model"),
			Doc: "Endpoint in the form of OpenAI that turns texts into vectors. With it, search also compares meanings. It gets the definitions of all tools, and every query.",
		}}),
		Doc: "The tool search.",
	}}
})

// Settings are the values of the Section.
type Settings struct {
	Embeddings Embeddings
}

// Embeddings are how search gets vectors.
type Embeddings struct {
	Address config.Address // without a URL, search only compares words
	Model   string
	Headers []config.Named[string]
}
