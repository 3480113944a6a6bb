package model

import "testing"

func TestPriceThatIsNotKnownIsNotZero(t *testing.T) {
	three, ten := 3.0, 10.0
	for _, c := range []struct {
		name  string
		model OpenedModel
		known bool
		in    float64
	}{
		{"config", OpenedModel{Model: "m", Info: ModelConfig{InputPrice: &three, OutputPrice: &ten}}, true, 3},
		{"config before the list", OpenedModel{Model: "claude-opus-4-5", listed: "anthropic", Info: ModelConfig{InputPrice: &three, OutputPrice: &ten}}, true, 3},
		{"half a price", OpenedModel{Model: "m", Info: ModelConfig{InputPrice: &three}}, false, 0},
		{"list", OpenedModel{Model: "claude-opus-4-5", listed: "anthropic"}, true, 5},
		{"list, with a date", OpenedModel{Model: "claude-opus-4-5-20251101", listed: "anthropic"}, true, 5},
		{"another model of the provider", OpenedModel{Model: "claude-opus-0", listed: "anthropic"}, false, 0},
		{"a server of the user's", OpenedModel{Model: "claude-opus-4-5"}, false, 0},
		{"script", OpenedModel{Model: "script", Free: true}, true, 0},
	} {
		p, known := c.model.Prices()
		if known != c.known || p.Input != c.in {
			t.Errorf("%s: %+v, %v", c.name, p, known)
		}
	}
}

func TestFamousNameAtAnotherAddressHasNoPrice(t *testing.T) {
	if listedProvider("openai", builtin["openai"].BaseURL+"/") != "openai" {
		t.Error("the provider's own address is not known")
	}
	for _, c := range [][2]string{{"openai", "http://localhost:4000/v1"}, {"mine", builtin["openai"].BaseURL}} {
		if got := listedProvider(c[0], c[1]); got != "" {
			t.Errorf("%v is priced like %q", c, got)
		}
	}
}

func TestCacheIsNeverEstimatedTooCheap(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "gemini", "deepseek", "groq", "openrouter"} {
		for _, p := range priceList() {
			if string(p.ID) != provider {
				continue
			}
			for _, m := range p.Models {
				if got := priced(m); got.CacheRead <= 0 && m.CostPer1MIn > 0 || got.CacheWrite < got.Input {
					t.Errorf("%s/%s: %+v", provider, m.ID, got)
				}
			}
		}
	}
}
