package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// showServer has one example of each feature of MCP beyond plain text results.
func showServer(Options) (*server, error) {
	return &server{
		instructions: "Each tool shows one feature of MCP: progress, an image, a structured result, a question to the person.",
		tools: []tool{{
			Name: "count_down", Title: "Count down",
			Description: "Count down to zero, and report progress at each step.",
			Input: schema(`{"type":"object","properties":{
				"from":{"type":"integer","description":"Number to start at","minimum":1,"maximum":100,"default":5},
				"pause_ms":{"type":"integer","description":"Milliseconds between two steps","minimum":0,"maximum":1000,"default":300}
			},"additionalProperties":false}`),
			run: with(countArguments{From: 5, Pause: 300}, countDown),
		}, {
			Name: "draw_bars", Title: "Draw a bar chart",
			Description: "Draw a bar chart of some numbers, as a PNG image.",
			Input: schema(`{"type":"object","properties":{
				"values":{"type":"array","description":"One number for each bar","items":{"type":"number","minimum":0},"minItems":1,"maxItems":50}
			},"required":["values"],"additionalProperties":false}`),
			run: with(barArguments{}, drawBars),
		}, {
			Name: "measure_text", Title: "Measure a text",
			Description: "Count the characters, words and lines of a text, and find its longest word.",
			Input: schema(`{"type":"object","properties":{
				"text":{"type":"string","description":"The text to measure"}
			},"required":["text"],"additionalProperties":false}`),
			Output: schema(`{"type":"object","properties":{
				"characters":{"type":"integer"},"words":{"type":"integer"},"lines":{"type":"integer"},"longest_word":{"type":"string"}
			},"required":["characters","words","lines","longest_word"]}`),
			run: with(textArguments{}, measureText),
		}, {
			Name: "order_coffee", Title: "Order a coffee",
			Description: "Ask the person which coffee they want, and confirm the order. Nothing is really ordered.",
			Input:       schema(`{"type":"object","properties":{},"additionalProperties":false}`),
			run:         orderCoffee,
		}},
		prompts: []prompt{{
			Name: "use_tools", Title: "Do a task with tools", Description: "Ask the model to do a task with the tools it has",
			Arguments: []promptArgument{
				{Name: "task", Description: "What to do", Required: true},
				{Name: "language", Description: "Language of the answer (English)"},
			},
			write: usePrompt,
		}},
		resources: []resource{{
			URI: "show://guide", Name: "guide", Title: "Guide", Description: "What this server shows, and how to try it", MIMEType: "text/markdown",
			text: guide,
		}},
	}, nil
}

const guide = `# The demo server show

| try | it shows |
|---|---|
| count_down | progress of a long call, which can be canceled |
| draw_bars | a result that is an image |
| measure_text | a structured result with an output schema |
| order_coffee | a question to the person during a call (elicitation) |
| the prompt use_tools | a prompt with arguments |
| this page | a resource |
`

type countArguments struct {
	From  int
	Pause int `json:"pause_ms"`
}

func countDown(ctx context.Context, c *call, a countArguments) (*result, error) {
	if err := errors.Join(inRange("from", a.From, 1, 100), inRange("pause_ms", a.Pause, 0, 1000)); err != nil {
		return nil, err
	}
	for i := range a.From {
		c.progress(i, a.From, fmt.Sprintf("%d…", a.From-i))
		select {
		case <-time.After(time.Duration(a.Pause) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.progress(a.From, a.From, "0")
	return text("Counted down from %d to 0.", a.From), nil
}

// Size of a chart in pixels.
const (
	chartHeight = 160
	barWidth    = 24
	barGap      = 8
)

type barArguments struct{ Values []float64 }

func drawBars(_ context.Context, _ *call, a barArguments) (*result, error) {
	if n := len(a.Values); n < 1 || n > 50 {
		return nil, fmt.Errorf("arguments.values: expected 1 to 50 numbers, got %d", n)
	}
	highest := 0.0
	for i, v := range a.Values {
		if v < 0 {
			return nil, fmt.Errorf("arguments.values[%d]: expected a number from 0 on", i)
		}
		highest = max(highest, v)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, chart(a.Values, highest)); err != nil {
		return nil, err
	}
	bars := fmt.Sprintf("%d bars, the highest is %g", len(a.Values), highest)
	if len(a.Values) == 1 {
		bars = fmt.Sprintf("1 bar of %g", highest)
	}
	return &result{Content: []content{
		{Type: "text", Text: bars},
		{Type: "image", Data: file.Bytes(), MIMEType: "image/png"},
	}}, nil
}

// chart draws blue bars on white. The highest bar reaches up to the margin.
func chart(values []float64, highest float64) image.Image {
	picture := image.NewPaletted(image.Rect(0, 0, barGap+len(values)*(barWidth+barGap), chartHeight),
		color.Palette{color.White, color.RGBA{0x2f, 0x6f, 0xd0, 0xff}})
	bar := image.NewUniform(picture.Palette[1])
	for i, v := range values {
		height := 1
		if highest > 0 {
			height = max(1, int(math.Round(v/highest*(chartHeight-2*barGap))))
		}
		left := barGap + i*(barWidth+barGap)
		draw.Draw(picture, image.Rect(left, chartHeight-barGap-height, left+barWidth, chartHeight-barGap), bar, image.Point{}, draw.Src)
	}
	return picture
}

// measures are the structured result of measure_text.
type measures struct {
	Characters  int    `json:"characters"`
	Words       int    `json:"words"`
	Lines       int    `json:"lines"`
	LongestWord string `json:"longest_word"`
}

type textArguments struct{ Text string }

func measureText(_ context.Context, _ *call, a textArguments) (*result, error) {
	m := measures{Characters: utf8.RuneCountInString(a.Text)}
	for range strings.Lines(a.Text) {
		m.Lines++
	}
	for word := range strings.FieldsSeq(a.Text) {
		m.Words++
		if utf8.RuneCountInString(word) > utf8.RuneCountInString(m.LongestWord) {
			m.LongestWord = word
		}
	}
	return structured(m), nil
}

const coffeeForm = `{"type":"object","properties":{
	"drink":{"type":"string","title":"Drink","enum":["espresso","cappuccino","latte"]},
	"size":{"type":"string","title":"Size","enum":["small","medium","large"],"default":"medium"},
	"sugar":{"type":"integer","title":"Sugar","description":"Spoons of sugar","minimum":0,"maximum":3,"default":0}
},"required":["drink"]}`

func orderCoffee(ctx context.Context, c *call) (*result, error) {
	form, err := c.elicit(ctx, "Which coffee would you like?", coffeeForm)
	if err != nil {
		return nil, err
	}
	if form == nil {
		return text("No coffee, then."), nil
	}
	order := struct {
		Drink, Size string
		Sugar       int
	}{Size: "medium"}
	if err := json.Unmarshal(form, &order); err != nil || order.Drink == "" {
		return nil, errors.New("the client's answer does not fit the form; it needs a drink")
	}
	return text("One %s %s, sugar: %d. (A demo: nothing was ordered.)", order.Size, order.Drink, order.Sugar), nil
}

func usePrompt(arguments map[string]string) string {
	language := cmp.Or(arguments["language"], "English")
	return "Do this task with the tools you have: " + arguments["task"] + "\n" +
		"Find a fitting tool first, look at its parameters, then call it. Say which tool you used. Answer in " + language + "."
}
